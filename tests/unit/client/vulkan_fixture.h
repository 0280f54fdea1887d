// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the tests with real imports share.
#ifndef TESTS_UNIT_CLIENT_VULKAN_FIXTURE_H_
#define TESTS_UNIT_CLIENT_VULKAN_FIXTURE_H_

#include <dlfcn.h>

#include <memory>

#include "gtest/gtest.h"
#include "heapbroker/client.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/unit/client/fake_daemon.h"
#include "tests/unit/client/vulkan_block_source.h"

namespace heapbroker {

// A process's side: a session, a device of its own, an importer.
struct VulkanClient {
  explicit VulkanClient(const FakeDaemon& daemon)
      : client(Client::Connect({.runtime_dir = daemon.runtime_dir()}).value()),
        device(MinimalDevice::Create(client->devices()[0]).value()),
        importer(VulkanImporter::Create(device->context()).value()) {}

  const std::shared_ptr<Client> client;
  const std::unique_ptr<MinimalDevice> device;
  const std::unique_ptr<VulkanImporter> importer;
};

class VulkanFixture : public testing::Test {
 protected:
  // The loader unloads lavapipe with its last instance, and the driver keeps a
  // few bytes behind a variable of its own: a leak sanitizer that sees neither
  // calls them lost. Loaded for good it sees both. Where the driver is not
  // installed this does nothing.
  static void SetUpTestSuite() { dlopen("libvulkan_lvp.so", RTLD_NOW | RTLD_NODELETE); }

  const std::unique_ptr<VulkanBlockSource> source_ = VulkanBlockSource::Create().value();
  FakeDaemon daemon_{*source_};
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CLIENT_VULKAN_FIXTURE_H_
