// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A daemon, a session with it, and its device.
#ifndef TESTS_BENCHMARK_MEASURED_SESSION_H_
#define TESTS_BENCHMARK_MEASURED_SESSION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "heapbroker/client.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/support/daemon_process.h"

namespace heapbroker {

// In this order, since each needs those before it.
struct MeasuredSession {
  static absl::StatusOr<std::unique_ptr<MeasuredSession>> Start(const std::string& name);

  std::unique_ptr<DaemonProcess> daemon;
  std::shared_ptr<Client> client;
  std::unique_ptr<MinimalDevice> device;
  std::unique_ptr<VulkanImporter> importer;
};

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_MEASURED_SESSION_H_
