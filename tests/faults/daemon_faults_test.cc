// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A real daemon and the client library on devices and drivers that this machine
// does not have. The client is this process, under a plan of its own.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/posix/unique_fd.h"
#include "gmock/gmock.h"
#include "heapbroker/client.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/faults/daemon_under_faults.h"
#include "tests/faults/vulkan_program.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class DaemonFaultsTest : public DaemonUnderFaults {};

constexpr char kPadded[] = "device gpu\n pad 64KiB 64\n";

TEST_F(DaemonFaultsTest, ALeaseOnAPaddingDriverSaysItsRealSizeAndCanBeImported) {
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(kPadded));
  ASSERT_NO_FATAL_FAILURE(ConnectUnder(kPadded));
  ASSERT_OK_AND_ASSIGN(const Lease lease, Allocate(MiB(1) - Bytes(1)));
  EXPECT_EQ(lease.facts().size, MiB(1) - Bytes(1));
  // As the driver pads, however the pool has rounded before.
  EXPECT_GE(lease.facts().allocation_size, MiB(1) + Bytes(64));
  EXPECT_EQ(lease.facts().allocation_size.count() % KiB(64).count(), 64u);
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer buffer, Import(lease));
  ASSERT_NE(buffer.mapped(), nullptr);
  auto* const bytes = static_cast<uint8_t*>(buffer.mapped());
  bytes[0] = 0x12;
  bytes[buffer.size().count() - 1] = 0x34;

  // As any other program would, by the facts; and not by the size asked for.
  const VulkanProgram other;
  ASSERT_OK_AND_ASSIGN(const UniqueFd fd, DuplicateFd(*lease.fd()));
  const uint32_t type = lease.facts().memory_type_index;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  EXPECT_EQ(other.Import(fd.get(), type, lease.facts().size.count(), &memory),
            VK_ERROR_INVALID_EXTERNAL_HANDLE);
  ASSERT_OK_AND_ASSIGN(UniqueFd given, DuplicateFd(*lease.fd()));
  ASSERT_EQ(other.Import(given.Release(), type, lease.facts().allocation_size.count(), &memory),
            VK_SUCCESS);
  void* mapped = nullptr;
  ASSERT_EQ(vkMapMemory(other.device(), memory, 0, VK_WHOLE_SIZE, 0, &mapped), VK_SUCCESS);
  EXPECT_EQ(static_cast<uint8_t*>(mapped)[0], 0x12);
  EXPECT_EQ(static_cast<uint8_t*>(mapped)[buffer.size().count() - 1], 0x34);
  other.Free(memory);
}

TEST_F(DaemonFaultsTest, TheDriverNeverSeesMoreAllocationsThanItAllows) {
  constexpr char kPlan[] = "device gpu\n maxMemoryAllocationCount 64\n";
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(kPlan));
  ASSERT_NO_FATAL_FAILURE(ConnectUnder(kPlan));
  std::vector<Lease> leases;
  std::vector<absl::Status> refusals;
  for (int i = 0; i < 200; ++i) {
    absl::StatusOr<Lease> lease = Allocate(KiB(4));
    if (lease.ok()) {
      leases.push_back(*std::move(lease));
    } else {
      refusals.push_back(lease.status());
    }
  }
  EXPECT_GE(leases.size(), 32u);
  EXPECT_LE(leases.size(), 64u);
  for (const absl::Status& refusal : refusals) {
    EXPECT_THAT(refusal, StatusIs(StatusCode::kResourceExhausted, "allocations"));
  }
  EXPECT_LE(daemon_file().Device("gpu").peak_allocations, 64u);
  EXPECT_EQ(daemon_file().Device("gpu").live_allocations, leases.size());

  std::vector<DeviceBuffer> buffers;
  for (int i = 0; i < 30; ++i) {
    ASSERT_OK_AND_ASSIGN(DeviceBuffer buffer, Import(leases[i]));
    buffers.push_back(std::move(buffer));
  }
  EXPECT_EQ(client_file().Device("gpu").peak_allocations, 30u);
  buffers.clear();
  leases.pop_back();
  EXPECT_THAT(Allocate(KiB(4)), IsOk());
}

TEST_F(DaemonFaultsTest, AMaximumThatIsALieIsACleanRefusal) {
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(R"(
device gpu
  deviceType discrete
  memoryHeap 256MiB device_local
  memoryType 0 device_local|host_visible|host_coherent
  maxMemoryAllocationSize 128MiB
  largest_real_allocation 32MiB
)"));
  ASSERT_NO_FATAL_FAILURE(Connect());
  const Holdings before = Held();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Allocate(MiB(64)).status().code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(Held(), before);
  }
  EXPECT_THAT(Allocate(MiB(16)), IsOk());
}

TEST_F(DaemonFaultsTest, StopsAtItsOwnBudgetWhereTheDriverNeverFails) {
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(R"(
device gpu
  deviceType discrete
  memoryHeap 1GiB device_local
  memoryType 0 device_local|host_visible|host_coherent
  add VK_EXT_memory_budget
  heapBudget 0 800MiB
)"));
  ASSERT_NO_FATAL_FAILURE(Connect());
  // Nine tenths of what the driver offers.
  const uint64_t budget = Stats().devices(0).heaps(0).available();
  EXPECT_EQ(budget, MiB(720).count());
  std::vector<Lease> leases;
  for (int i = 0; i < 20; ++i) {
    absl::StatusOr<Lease> lease = Allocate(MiB(100));
    if (lease.ok()) {
      leases.push_back(*std::move(lease));
    } else {
      EXPECT_EQ(lease.status().code(), StatusCode::kResourceExhausted);
    }
  }
  EXPECT_GE(leases.size(), 4u);  // Blocks may be rounded up.
  EXPECT_LE(leases.size() * MiB(100).count(), budget);
  EXPECT_LE(Held().in_use, budget);
  EXPECT_LE(daemon_file().Device("gpu").peak_bytes, budget);
  leases.pop_back();
  EXPECT_THAT(Allocate(MiB(100)), IsOk());
}

TEST_F(DaemonFaultsTest, MemoryThatHoldsTracesOfOthersReadsZeroToTheLastByte) {
  constexpr char kPlan[] = R"(
device gpu
  deviceType discrete
  driverID 1
  memoryHeap 256MiB device_local
  memoryType 0 device_local|host_visible|host_coherent
  pad 64KiB 64
  fresh_memory 165
)";
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(kPlan));
  ASSERT_NO_FATAL_FAILURE(ConnectUnder(kPlan));
  ASSERT_OK_AND_ASSIGN(const Lease lease, Allocate(MiB(1)));
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer buffer, Import(lease));
  const auto* const bytes = static_cast<const uint8_t*>(buffer.mapped());
  // The mapping covers the memory, which is larger than the buffer.
  const uint64_t size = lease.facts().allocation_size.count();
  EXPECT_EQ(std::count(bytes, bytes + size, 0), static_cast<int64_t>(size));
}

// A discrete GPU; `mode` is the one of the device's.
std::string Discrete(absl::string_view mode) {
  return absl::StrCat("device gpu\n mode ", mode, R"(
  deviceType discrete
  driverID 1
  memoryHeap 256MiB device_local
  memoryHeap 512MiB none
  memoryType 0 device_local
  memoryType 1 host_visible|host_coherent
  fresh_memory 165
)");
}

TEST_F(DaemonFaultsTest, ClearsMemoryThatTheHostCannotMapByTheDevice) {
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(Discrete("strict")));
  // A client that may look where no client can.
  ASSERT_NO_FATAL_FAILURE(ConnectUnder(Discrete("lenient")));
  ASSERT_OK_AND_ASSIGN(const Lease lease, Allocate(MiB(1), MemoryKind::kDeviceLocal));
  EXPECT_EQ(lease.facts().memory_type_index, 0u);
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer buffer, Import(lease));
  EXPECT_EQ(buffer.mapped(), nullptr);
  EXPECT_EQ(daemon_file().Device("gpu").CallsOf(faults::Function::kMapMemory), 0u);

  const VulkanProgram other;
  ASSERT_OK_AND_ASSIGN(UniqueFd fd, DuplicateFd(*lease.fd()));
  const uint64_t size = lease.facts().allocation_size.count();
  VkDeviceMemory memory = VK_NULL_HANDLE;
  ASSERT_EQ(other.Import(fd.Release(), 0, size, &memory), VK_SUCCESS);
  void* mapped = nullptr;
  ASSERT_EQ(vkMapMemory(other.device(), memory, 0, VK_WHOLE_SIZE, 0, &mapped), VK_SUCCESS);
  const auto* const bytes = static_cast<const uint8_t*>(mapped);
  EXPECT_EQ(std::count(bytes, bytes + size, 0), static_cast<int64_t>(size));
  other.Free(memory);
}

TEST_F(DaemonFaultsTest, ServesTheDeviceThatItIsToldAmongSeveralOfOneDriver) {
  constexpr char kTwo[] =
      "device a\n deviceName Left\n deviceUUID "
      "11111111111111111111111111111111\n"
      "device b\n deviceName Right\n deviceUUID "
      "22222222222222222222222222222222\n";
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(kTwo, {"--device=Right"}));
  ASSERT_NO_FATAL_FAILURE(ConnectUnder(kTwo));
  ASSERT_OK_AND_ASSIGN(const Lease lease, Allocate(MiB(1)));
  EXPECT_THAT(Import(lease), IsOk());
  EXPECT_EQ(daemon_file().Device("a").live_devices, 0u);
  EXPECT_EQ(daemon_file().Device("b").live_allocations, 1u);
  EXPECT_EQ(client_file().Device("b").CallsOf(faults::Function::kImport), 1u);
}

// Whatever call of the driver fails while memory is made.
class FailingCallTest : public DaemonUnderFaults,
                        public testing::WithParamInterface<const char*> {};

TEST_P(FailingCallTest, IsARefusalThatLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder("", {"--clear=always"}));
  ASSERT_NO_FATAL_FAILURE(Connect());
  // A call that asks the driver nothing, for the client's connection.
  EXPECT_EQ(Allocate(Bytes()).status().code(), StatusCode::kInvalidArgument);
  const Holdings before = Held();
  const size_t descriptors = DaemonDescriptors();
  // Once; calls are counted anew from here.
  daemon_file().Write(
      absl::StrCat("fault ", GetParam(), ":1:error(VK_ERROR_OUT_OF_HOST_MEMORY)\n"));
  EXPECT_EQ(Allocate(MiB(1)).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(daemon_file().Device("default").faults, 1u);
  EXPECT_EQ(Held(), before);
  EXPECT_EQ(daemon_file().Device("default").live_allocations, 0u);
  EXPECT_EQ(DaemonDescriptors(), descriptors);
  EXPECT_THAT(Allocate(MiB(1)), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Calls, FailingCallTest,
                         testing::Values("vkAllocateMemory", "vkMapMemory", "vkCreateBuffer",
                                         "vkBindBufferMemory", "vkQueueSubmit", "vkWaitForFences",
                                         "vkGetMemoryFdKHR"),
                         [](const auto& call) { return std::string(call.param); });

}  // namespace
}  // namespace heapbroker
