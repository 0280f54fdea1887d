// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What VulkanMemory does beyond the contract, as far as a real driver shows it.

#include "daemon/vulkan/vulkan_memory.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process_facts.h"

namespace heapbroker {
namespace {

constexpr Bytes kSize = MiB(16);

class VulkanMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<OpenedDevice> opened = OpenDevice(DeviceSelector{});
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = std::make_unique<VulkanDevice>(std::move(opened->device));
    while (!device_->info().memory_types[block_class_.memory_type].exportable.any()) {
      ++block_class_.memory_type;
    }
  }

  std::unique_ptr<VulkanMemory> Make(VulkanMemoryOptions options) {
    absl::StatusOr<std::unique_ptr<VulkanMemory>> memory = VulkanMemory::Create(*device_, options);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }

  // Bytes of a fresh allocation of kSize that somebody has already written: a
  // software device's memory is a file, in which pages that nobody touched take
  // no space. Empty where the descriptor is no such file.
  std::optional<Bytes> TouchedBytes(VulkanMemoryOptions options) {
    const std::unique_ptr<VulkanMemory> memory = Make(options);
    const absl::StatusOr<DeviceAllocation> allocation = memory->Allocate(block_class_, kSize);
    EXPECT_TRUE(allocation.ok()) << allocation.status();
    struct stat file {};
    EXPECT_EQ(fstat(allocation->exported->fd(), &file), 0);
    if (!S_ISREG(file.st_mode)) return std::nullopt;
    constexpr uint64_t kBlock = 512;  // Of st_blocks, whatever the file system's are.
    return Bytes(static_cast<uint64_t>(file.st_blocks) * kBlock);
  }

  std::unique_ptr<VulkanDevice> device_;
  BlockClass block_class_;
};

TEST_F(VulkanMemoryTest, ClearsEveryPageOfFreshMemoryWhenToldToOnEitherPath) {
  for (ClearPath path : {ClearPath::kMapping, ClearPath::kTransfer}) {
    const std::optional<Bytes> touched = TouchedBytes({ClearMode::kAlways, path});
    if (!touched) GTEST_SKIP() << "this device's memory is not a file";
    EXPECT_GE(*touched, kSize);
  }
}

TEST_F(VulkanMemoryTest, ByDefaultLeavesMemoryAloneThatTheDriverGivesAsZeros) {
  if (!device_->fresh_memory_is_zero()) GTEST_SKIP() << "this driver promises nothing";
  const std::optional<Bytes> touched = TouchedBytes({});
  ASSERT_TRUE(touched.has_value());
  EXPECT_LT(*touched, MiB(1));
}

// Allocates until the process is at a limit of `limit` descriptors.
std::pair<std::vector<DeviceAllocation>, absl::Status> AllocateUntilRefused(VulkanMemory& memory,
                                                                            BlockClass block_class,
                                                                            rlim_t limit) {
  rlimit before{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = limit;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const absl::Cleanup restore = [&] { setrlimit(RLIMIT_NOFILE, &before); };
  std::vector<DeviceAllocation> allocations;
  while (allocations.size() < limit) {
    absl::StatusOr<DeviceAllocation> allocation = memory.Allocate(block_class, KiB(64));
    if (!allocation.ok()) return {std::move(allocations), allocation.status()};
    allocations.push_back(*std::move(allocation));
  }
  return {std::move(allocations), absl::OkStatus()};
}

TEST_F(VulkanMemoryTest, RunningOutOfDescriptorsIsAnErrorThatLeavesNothingAllocated) {
  const std::unique_ptr<VulkanMemory> memory = Make({ClearMode::kAlways, ClearPath::kTransfer});
  const size_t open_before = OpenDescriptorCount(getpid()).value_or(0);
  // Where an allocation takes a descriptor of the driver's and one of its own,
  // one of two neighbouring limits lets the first pass and refuses the second.
  for (rlim_t limit : {64, 65}) {
    auto [allocations, refusal] = AllocateUntilRefused(*memory, block_class_, limit);
    EXPECT_EQ(refusal.code(), absl::StatusCode::kResourceExhausted) << refusal;
    for (const DeviceAllocation& allocation : allocations) memory->Free(allocation.id);
    allocations.clear();
    EXPECT_EQ(OpenDescriptorCount(getpid()).value_or(0), open_before);
  }
  EXPECT_TRUE(memory->Allocate(block_class_, KiB(64)).ok());
}

TEST_F(VulkanMemoryTest, ClearingWhatWasFreedIsAnError) {
  const std::unique_ptr<VulkanMemory> memory = Make({});
  const absl::StatusOr<DeviceAllocation> allocation = memory->Allocate(block_class_, KiB(64));
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  memory->Free(allocation->id);
  EXPECT_EQ(memory->Clear(block_class_, *allocation).code(), absl::StatusCode::kNotFound);
}

TEST_F(VulkanMemoryTest, RefusalsSayWhatIsAllowed) {
  const std::unique_ptr<VulkanMemory> memory = Make({});
  const std::string largest = std::to_string(memory->info().max_allocation_size.count());
  const absl::Status size = memory->RequiredSize(block_class_, Bytes::Max()).status();
  EXPECT_THAT(std::string(size.message()), testing::HasSubstr("allowed are 1 to " + largest));
  const absl::Status type = memory->Allocate({99, HandleType::kOpaqueFd}, MiB(1)).status();
  EXPECT_THAT(std::string(type.message()),
              testing::AllOf(testing::HasSubstr("memory type 99"),
                             testing::HasSubstr("allowed are the types {")));
}

TEST_F(VulkanMemoryTest, AMovedDeviceServesOn) {
  VulkanDevice moved = std::move(*device_);
  device_.reset();
  absl::StatusOr<std::unique_ptr<VulkanMemory>> memory = VulkanMemory::Create(moved, {});
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE((*memory)->Allocate(block_class_, KiB(64)).ok());
}

}  // namespace
}  // namespace heapbroker
