// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What DeviceMemory promises, held against every implementation of it.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/core/device_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/contract/device_under_test.h"
#include "tests/support/process_facts.h"

namespace heapbroker {
namespace {

constexpr uint8_t kDirt = 0xA5;

bool AllBytesAre(absl::Span<const uint8_t> bytes, uint8_t value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](uint8_t byte) { return byte == value; });
}

class DeviceMemoryContractTest : public testing::TestWithParam<DeviceMaker> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<DeviceUnderTest>> made = GetParam().make();
    ASSERT_TRUE(made.ok()) << made.status();
    device_ = *std::move(made);
    const std::vector<MemoryTypeInfo>& types = memory().info().memory_types;
    block_class_ = GetParam().block_class;
    const auto found = std::find_if(types.begin(), types.end(), [this](const MemoryTypeInfo& type) {
      return type.exportable.has(block_class_.handle_type) && type.host_visible &&
             type.host_coherent;
    });
    ASSERT_NE(found, types.end()) << "no exportable type that the test can look into";
    block_class_.memory_type = static_cast<uint32_t>(found - types.begin());
  }

  DeviceMemory& memory() { return device_->memory(); }

  // Memory for an external buffer of `size` bytes.
  DeviceAllocation Allocate(Bytes size) {
    absl::StatusOr<Bytes> required = memory().RequiredSize(block_class_, size);
    EXPECT_TRUE(required.ok()) << required.status();
    return AllocateExactly(required.value_or(size));
  }

  DeviceAllocation AllocateExactly(Bytes allocation_size) {
    absl::StatusOr<DeviceAllocation> allocation = memory().Allocate(block_class_, allocation_size);
    EXPECT_TRUE(allocation.ok()) << allocation.status();
    return allocation.value_or(DeviceAllocation{});
  }

  // `size` itself, so that every end is seen that memory may have; where Vulkan
  // demands a size that some buffer needs exactly, the next of those.
  DeviceAllocation AllocateOddly(Bytes size) {
    return block_class_.dedicated ? Allocate(size) : AllocateExactly(size);
  }

  std::unique_ptr<ImportedMemory> Import(const DeviceAllocation& allocation) {
    return Import(allocation.allocation_size, *allocation.exported);
  }

  std::unique_ptr<ImportedMemory> Import(Bytes allocation_size, const ExportedHandle& exported) {
    absl::StatusOr<std::unique_ptr<ImportedMemory>> imported =
        device_->Import(block_class_, allocation_size, exported);
    EXPECT_TRUE(imported.ok()) << imported.status();
    return *std::move(imported);
  }

  std::unique_ptr<DeviceUnderTest> device_;
  BlockClass block_class_;
};

// Sizes that no device has, most of which wrap when something is added to them.
std::vector<Bytes> ImpossibleSizes(const DeviceInfo& info) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  std::vector<Bytes> sizes = {Bytes(), info.max_allocation_size + Bytes(1),
                              Bytes((uint64_t{1} << 63) - 1), Bytes(uint64_t{1} << 63)};
  for (uint64_t below : {512, 511, 256, 64, 63, 16, 4, 3, 2, 1, 0}) {
    sizes.push_back(Bytes(kMax - below));
  }
  return sizes;
}

TEST_P(DeviceMemoryContractTest, ExportsWhatItAllocates) {
  const absl::StatusOr<Bytes> required = memory().RequiredSize(block_class_, MiB(1));
  ASSERT_TRUE(required.ok()) << required.status();
  const DeviceAllocation allocation = AllocateExactly(*required);
  EXPECT_NE(allocation.id, DeviceAllocationId());
  EXPECT_EQ(allocation.allocation_size, *required);
  ASSERT_NE(allocation.exported, nullptr);
  if (device_->has_bytes()) {
    const int flags = fcntl(allocation.exported->fd(), F_GETFD);
    ASSERT_NE(flags, -1) << "the descriptor is not open";
    EXPECT_NE(flags & FD_CLOEXEC, 0);
  } else {
    EXPECT_EQ(allocation.exported->fd(), -1);
  }
  memory().Free(allocation.id);
}

TEST_P(DeviceMemoryContractTest, NeverUsesAnIdTwice) {
  std::set<DeviceAllocationId> ids;
  for (int i = 0; i < 20; ++i) {
    const DeviceAllocation kept = Allocate(KiB(64));
    const DeviceAllocation freed = Allocate(KiB(64));
    memory().Free(freed.id);
    EXPECT_TRUE(ids.insert(kept.id).second);
    EXPECT_TRUE(ids.insert(freed.id).second);
  }
}

TEST_P(DeviceMemoryContractTest, RequiredSizeCoversTheSizeAndCanBeAllocated) {
  for (uint64_t size : {1, 2, 3, 4, 5, 63, 65, 4095, 4097, 65535, 65536, 1048577}) {
    const absl::StatusOr<Bytes> required = memory().RequiredSize(block_class_, Bytes(size));
    ASSERT_TRUE(required.ok()) << required.status();
    EXPECT_GE(*required, Bytes(size));
    memory().Free(AllocateExactly(*required).id);
  }
}

TEST_P(DeviceMemoryContractTest, RefusesImpossibleSizesAndLeavesNothingAllocated) {
  const size_t before = device_->Footprint();
  for (Bytes size : ImpossibleSizes(memory().info())) {
    EXPECT_EQ(memory().RequiredSize(block_class_, size).status().code(),
              absl::StatusCode::kOutOfRange)
        << size;
    EXPECT_EQ(memory().Allocate(block_class_, size).status().code(), absl::StatusCode::kOutOfRange)
        << size;
  }
  EXPECT_EQ(device_->Footprint(), before);
  memory().Free(Allocate(MiB(1)).id);
}

TEST_P(DeviceMemoryContractTest, FreeingWhatIsNotAliveChangesNothing) {
  const DeviceAllocation alive = Allocate(KiB(64));
  DeviceAllocation freed = Allocate(KiB(64));
  freed.exported = nullptr;
  memory().Free(freed.id);
  const size_t before = device_->Footprint();
  memory().Free(freed.id);
  memory().Free(DeviceAllocationId());
  memory().Free(DeviceAllocationId(std::numeric_limits<uint64_t>::max()));
  EXPECT_EQ(device_->Footprint(), before);
  EXPECT_TRUE(memory().Clear(block_class_, alive).ok());
}

TEST_P(DeviceMemoryContractTest, AllocatingAndFreeingLeavesNothingBehind) {
  memory().Free(Allocate(KiB(64)).id);
  const size_t before = device_->Footprint();
  for (uint64_t round = 0; round < 500; ++round) {
    DeviceAllocation allocation = Allocate(KiB(4 + round % 64));
    EXPECT_TRUE(memory().Clear(block_class_, allocation).ok());
    memory().Free(allocation.id);
  }
  EXPECT_EQ(device_->Footprint(), before);
}

TEST_P(DeviceMemoryContractTest, OneThreadMayFreeWhileAnotherAllocates) {
  constexpr int kRounds = 40;
  constexpr int kBatch = 5;
  const size_t before = device_->Footprint();
  std::vector<DeviceAllocation> last;
  for (int round = 0; round < kRounds; ++round) {
    std::thread freeing([this, old = std::exchange(last, {})]() mutable {
      for (DeviceAllocation& allocation : old) memory().Free(allocation.id);
    });
    for (int i = 0; i < kBatch; ++i) last.push_back(Allocate(KiB(16)));
    freeing.join();
  }
  for (const DeviceAllocation& allocation : std::exchange(last, {})) {
    memory().Free(allocation.id);
  }
  EXPECT_EQ(device_->Footprint(), before);
}

TEST_P(DeviceMemoryContractTest, ReportsOnEveryHeapOrOnNone) {
  const size_t heaps = memory().info().heaps.size();
  EXPECT_THAT(memory().ReadHeaps().size(), testing::AnyOf(0U, heaps));
  const DeviceAllocation allocation = Allocate(MiB(1));
  EXPECT_THAT(memory().ReadHeaps().size(), testing::AnyOf(0U, heaps));
  memory().Free(allocation.id);
}

TEST_P(DeviceMemoryContractTest, FreesWhatIsLeftWhenItGoes) {
  // Counted for the process, since nothing can be asked of a device that has gone,
  // and compared with a device that had nothing left: a validation layer keeps some
  // for each that there ever was.
  const auto left_behind = [this](int allocations) -> int64_t {
    const size_t before = OpenDescriptorCount(getpid()).value();
    SetUp();
    for (int i = 0; i < allocations && device_ != nullptr; ++i) Allocate(KiB(64));
    device_.reset();
    return static_cast<int64_t>(OpenDescriptorCount(getpid()).value() - before);
  };
  device_.reset();
  const int64_t with_none = left_behind(0);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(left_behind(3), with_none);
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceMemoryContractTest, testing::ValuesIn([] {
                           std::vector<DeviceMaker> makers = VulkanDeviceMakers();
                           makers.push_back(SimulatedDeviceMaker());
                           return makers;
                         }()),
                         [](const testing::TestParamInfo<DeviceMaker>& test) {
                           return test.param.name;
                         });

// The claims about bytes, for devices that have some.
using DeviceBytesContractTest = DeviceMemoryContractTest;

TEST_P(DeviceBytesContractTest, WhatOneHolderWritesAnotherReads) {
  const DeviceAllocation allocation = Allocate(Bytes(1000003));
  const std::unique_ptr<ImportedMemory> one = Import(allocation);
  const std::unique_ptr<ImportedMemory> other = Import(allocation);
  for (size_t i = 0; i < one->bytes().size(); ++i) {
    one->bytes()[i] = static_cast<uint8_t>(i * 7 + i / 251);
  }
  EXPECT_EQ(one->bytes(), other->bytes());
  other->bytes()[17] ^= kDirt;
  EXPECT_EQ(one->bytes(), other->bytes());
  memory().Free(allocation.id);
}

TEST_P(DeviceBytesContractTest, AnImporterCanBindABufferOfTheSizeThatWasAskedFor) {
  for (uint64_t size : {1, 4, 4097, 65536, 1000003}) {
    const DeviceAllocation allocation = Allocate(Bytes(size));
    const std::unique_ptr<ImportedMemory> imported = Import(allocation);
    EXPECT_TRUE(imported->TryBuffer(Bytes(size)).ok()) << imported->TryBuffer(Bytes(size));
    memory().Free(allocation.id);
  }
}

TEST_P(DeviceBytesContractTest, AnImporterCanTakeTheAddressOfABlockThatWasMadeForIt) {
  const DeviceAllocation allocation = Allocate(KiB(64));
  const std::unique_ptr<ImportedMemory> imported = Import(allocation);
  const absl::StatusOr<VkDeviceAddress> address = imported->AddressOfBuffer(KiB(64));
  if (block_class_.device_address) {
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_NE(*address, 0U);
  } else {
    EXPECT_EQ(address.status().code(), absl::StatusCode::kFailedPrecondition);
  }
  memory().Free(allocation.id);
}

TEST_P(DeviceBytesContractTest, FreshMemoryReadsZeroToTheLastByte) {
  for (int round = 0; round < 3; ++round) {
    for (uint64_t size : {4, 5, 6, 7, 4099, 65536, 1048577, 4194306}) {
      const DeviceAllocation allocation = AllocateOddly(Bytes(size));
      const std::unique_ptr<ImportedMemory> imported = Import(allocation);
      EXPECT_TRUE(AllBytesAre(imported->bytes(), 0)) << size << " bytes";
      std::fill(imported->bytes().begin(), imported->bytes().end(), kDirt);
      memory().Free(allocation.id);
    }
  }
}

TEST_P(DeviceBytesContractTest, ClearingGivesZerosToTheLastByteAndToNobodyElse) {
  const DeviceAllocation before = Allocate(KiB(64));
  const std::unique_ptr<ImportedMemory> before_bytes = Import(before);
  std::fill(before_bytes->bytes().begin(), before_bytes->bytes().end(), kDirt);
  for (uint64_t size : {4, 5, 6, 7, 4099, 65536, 1048577, 4194306}) {
    const DeviceAllocation allocation = AllocateOddly(Bytes(size));
    const DeviceAllocation after = Allocate(KiB(64));
    const std::unique_ptr<ImportedMemory> bytes = Import(allocation);
    const std::unique_ptr<ImportedMemory> after_bytes = Import(after);
    std::fill(bytes->bytes().begin(), bytes->bytes().end(), kDirt);
    std::fill(after_bytes->bytes().begin(), after_bytes->bytes().end(), kDirt);

    const absl::Status cleared = memory().Clear(block_class_, allocation);
    EXPECT_TRUE(cleared.ok()) << cleared;
    EXPECT_TRUE(AllBytesAre(bytes->bytes(), 0)) << size << " bytes";
    EXPECT_TRUE(AllBytesAre(after_bytes->bytes(), kDirt));
    memory().Free(allocation.id);
    memory().Free(after.id);
  }
  EXPECT_TRUE(AllBytesAre(before_bytes->bytes(), kDirt));
  memory().Free(before.id);
}

TEST_P(DeviceBytesContractTest, AllocationsKeepTheirOwnBytes) {
  constexpr size_t kCount = 16;
  std::vector<DeviceAllocation> allocations;
  for (size_t i = 0; i < kCount; ++i) {
    allocations.push_back(Allocate(KiB(64)));
    const std::unique_ptr<ImportedMemory> imported = Import(allocations.back());
    std::fill(imported->bytes().begin(), imported->bytes().end(), static_cast<uint8_t>(i + 1));
  }
  for (size_t i = 0; i < kCount; i += 2) memory().Free(allocations[i].id);
  for (size_t i = 1; i < kCount; i += 2) {
    EXPECT_TRUE(AllBytesAre(Import(allocations[i])->bytes(), static_cast<uint8_t>(i + 1))) << i;
  }
}

TEST_P(DeviceBytesContractTest, AHolderOfTheHandleKeepsTheBytesPastTheFree) {
  DeviceAllocation allocation = Allocate(KiB(64));
  const std::shared_ptr<const ExportedHandle> handle = std::move(allocation.exported);
  const std::unique_ptr<ImportedMemory> early = Import(allocation.allocation_size, *handle);
  std::fill(early->bytes().begin(), early->bytes().end(), kDirt);
  memory().Free(allocation.id);
  EXPECT_TRUE(AllBytesAre(early->bytes(), kDirt));
  ASSERT_NE(fcntl(handle->fd(), F_GETFD), -1) << "freeing closed the holder's descriptor";
  EXPECT_TRUE(AllBytesAre(Import(allocation.allocation_size, *handle)->bytes(), kDirt));
}

TEST_P(DeviceBytesContractTest, RefusesTypesThatTheDeviceDoesNotHave) {
  for (uint32_t type : {32U, std::numeric_limits<uint32_t>::max()}) {
    BlockClass unknown = block_class_;
    unknown.memory_type = type;
    EXPECT_EQ(memory().Allocate(unknown, MiB(1)).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(memory().RequiredSize(unknown, MiB(1)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceBytesContractTest, testing::ValuesIn(VulkanDeviceMakers()),
                         [](const testing::TestParamInfo<DeviceMaker>& test) {
                           return test.param.name;
                         });

}  // namespace
}  // namespace heapbroker
