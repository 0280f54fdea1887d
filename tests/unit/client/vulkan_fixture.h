// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the tests with real imports share.
#ifndef TESTS_UNIT_CLIENT_VULKAN_FIXTURE_H_
#define TESTS_UNIT_CLIENT_VULKAN_FIXTURE_H_

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <memory>

#include "common/posix/unique_fd.h"
#include "gtest/gtest.h"
#include "heapbroker/client.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/support/status_matchers.h"
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

inline constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;

class VulkanImporterTest : public VulkanFixture {
 protected:
  // The next fetch gets this descriptor instead of the block's.
  void AnswerFetchesWith(const UniqueFd& fd) {
    daemon_.session_socket().AnswerWith([&fd](const v1::SessionRequest& request) {
      SessionAnswer answer;
      answer.reply.mutable_fetched()->add_block_ids(request.fetch().block_ids(0));
      answer.fds.push_back(DuplicateFd(fd.get()).value());
      return answer;
    });
  }

  VulkanClient a_{daemon_};
};

// What one device fills, another one reads to the last byte.
inline void ExpectSharing(VulkanClient& a, VulkanClient& b, const Lease& lease) {
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer writer, a.importer->Import(*lease.block(), kUsage));
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer reader, b.importer->Import(*lease.block(), kUsage));
  ASSERT_THAT(a.importer->SubmitAndWait([&](VkCommandBuffer commands) {
    writer.RecordAcquire(commands);
    vkCmdFillBuffer(commands, writer.handle(), 0, VK_WHOLE_SIZE, 0xdecafbad);
    writer.RecordRelease(commands);
  }),
              IsOk());
  ASSERT_THAT(b.importer->AcquireAll({reader}), IsOk());
  ASSERT_NE(reader.mapped(), nullptr);
  ASSERT_THAT(reader.Invalidate(Bytes(0), reader.size()), IsOk());
  uint32_t last = 0;
  std::memcpy(&last, static_cast<char*>(reader.mapped()) + reader.size().count() - 4, 4);
  EXPECT_EQ(last, 0xdecafbadu);
  EXPECT_THAT(b.importer->ReleaseAll({reader}), IsOk());
}

}  // namespace heapbroker
#endif  // TESTS_UNIT_CLIENT_VULKAN_FIXTURE_H_
