// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A real daemon under a plan of faults, and a client of it in this process.
#ifndef TESTS_FAULTS_DAEMON_UNDER_FAULTS_H_
#define TESTS_FAULTS_DAEMON_UNDER_FAULTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "heapbroker/client.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/faults/fault_file.h"
#include "tests/integration/daemon_fixture.h"

namespace heapbroker {

// A device with fast memory that cannot be mapped, and a little that can.
inline constexpr char kDiscreteGpu[] = R"(
device gpu
  deviceType discrete
  memoryHeap 1GiB device_local
  memoryHeap 256MiB none
  memoryType 0 device_local
  memoryType 1 host_visible|host_coherent
  memoryType 1 host_visible|host_coherent|host_cached
)";

// At the end the daemon is stopped, and must have given everything back to a driver
// that has nothing to complain about; so must the client.
class DaemonUnderFaults : public DaemonFixture {
 protected:
  // Before Connect: the daemon gets this process's environment.
  void StartDaemonUnder(absl::string_view plan, const std::vector<std::string>& flags = {});
  void ConnectUnder(absl::string_view plan);
  void Connect();
  void TearDown() override;

  absl::StatusOr<Lease> Allocate(Bytes size, MemoryKind kind = MemoryKind::kHostVisible);
  absl::StatusOr<DeviceBuffer> Import(const Lease& lease);
  // Made by the first call.
  absl::StatusOr<VulkanImporter*> Importer();

  Client& client() { return *client_; }
  FaultFile& daemon_file() { return *daemon_file_; }
  FaultFile& client_file() { return *client_file_; }

 private:
  std::unique_ptr<FaultFile> daemon_file_;
  std::unique_ptr<FaultFile> client_file_;  // Null: the client has no plan.
  std::unique_ptr<ScopedFaults> client_faults_;
  std::shared_ptr<Client> client_;
  std::unique_ptr<MinimalDevice> device_;
  std::unique_ptr<VulkanImporter> importer_;
};

}  // namespace heapbroker
#endif  // TESTS_FAULTS_DAEMON_UNDER_FAULTS_H_
