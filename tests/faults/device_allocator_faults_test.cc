// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Dynamic allocation in memory that the host cannot map, on a device that this machine
// does not have.
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "heapbroker/device_allocator.h"
#include "heapbroker/host_memory_resource.h"
#include "heapbroker/transfers.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/faults/daemon_under_faults.h"

namespace heapbroker {
namespace {

using absl::StatusCode;
using Contents = DeviceAllocator::Contents;

class DeviceAllocatorFaultsTest : public DaemonUnderFaults {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(kDiscreteGpu));
    ASSERT_NO_FATAL_FAILURE(ConnectUnder(kDiscreteGpu));
    ASSERT_OK_AND_ASSIGN(VulkanImporter* const importer, Importer());
    ASSERT_OK_AND_ASSIGN(std::shared_ptr<LocalCache> cache, LocalCache::Start(client(), *importer));
    ASSERT_OK_AND_ASSIGN(allocator_, DeviceAllocator::Create(std::move(cache)));
    ASSERT_OK_AND_ASSIGN(transfers_, Transfers::Create(client(), *importer));
  }
  void TearDown() override {
    transfers_.reset();
    allocator_.reset();
    DaemonUnderFaults::TearDown();
  }

  void Write(const BufferRange& range, char byte) {
    const std::string data(range.size().count(), byte);
    ASSERT_THAT(transfers_->Upload(range.buffer(), range.offset(), data.data(), range.size()),
                IsOk());
  }
  // Whether that is all that the range holds.
  bool Holds(const BufferRange& range, char byte) {
    std::string data(range.size().count(), '\0');
    EXPECT_THAT(transfers_->Download(range.buffer(), range.offset(), data.data(), range.size()),
                IsOk());
    return data == std::string(data.size(), byte);
  }

  std::unique_ptr<DeviceAllocator> allocator_;
  std::unique_ptr<Transfers> transfers_;
};

TEST_F(DeviceAllocatorFaultsTest, ZerosAreWrittenByTheDeviceAndOnlyWhereTheyAreAskedFor) {
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation before, allocator_->Allocate(KiB(4)));
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation dirty, allocator_->Allocate(KiB(64)));
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation after, allocator_->Allocate(KiB(4)));
  ASSERT_EQ(before.range.buffer().handle(), after.range.buffer().handle());
  for (const DeviceAllocation* allocation : {&before, &dirty, &after}) {
    ASSERT_NO_FATAL_FAILURE(Write(allocation->range, 'x'));
  }
  ASSERT_THAT(allocator_->Free(dirty.handle), IsOk());
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation clean,
                       allocator_->Allocate(Bytes(64'001), Bytes(1), Contents::kZeros));
  ASSERT_EQ(clean.range.offset(), dirty.range.offset());
  EXPECT_TRUE(Holds(clean.range, '\0'));
  EXPECT_TRUE(Holds(before.range, 'x'));
  EXPECT_TRUE(Holds(after.range, 'x'));
}

TEST_F(DeviceAllocatorFaultsTest, WithoutADeviceThatCanWriteThemThereIsNoAllocation) {
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation other, allocator_->Allocate(Bytes(1)));
  client_file().Write(
      absl::StrCat(kDiscreteGpu, "  fault vkQueueSubmit:1:error(VK_ERROR_OUT_OF_HOST_MEMORY)\n"));
  EXPECT_FALSE(allocator_->Allocate(KiB(4), Bytes(1), Contents::kZeros).ok());
  client_file().Write(kDiscreteGpu);
  EXPECT_EQ(allocator_->stats().allocations, 1u);
  EXPECT_THAT(allocator_->Allocate(KiB(4), Bytes(1), Contents::kZeros), IsOk());
  EXPECT_THAT(allocator_->Free(other.handle), IsOk());
}

TEST_F(DeviceAllocatorFaultsTest, InAnEmptyAllocationThereIsNothingForTheDeviceToWrite) {
  client_file().Write(
      absl::StrCat(kDiscreteGpu, "  fault vkQueueSubmit:1:error(VK_ERROR_OUT_OF_HOST_MEMORY)\n"));
  EXPECT_THAT(allocator_->Allocate(Bytes(0), Bytes(1), Contents::kZeros), IsOk());
}

// With memory that has to be flushed, and without.
class FlushedMemoryTest : public DaemonUnderFaults {
 protected:
  // What two allocations of a byte take with the smallest granules.
  void AllocateTwo(const std::string& plan, Bytes& allocated, Bytes& atom) {
    ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(plan));
    ASSERT_NO_FATAL_FAILURE(ConnectUnder(plan));
    ASSERT_OK_AND_ASSIGN(VulkanImporter* const importer, Importer());
    VkPhysicalDeviceProperties properties{};
    vkGetPhysicalDeviceProperties(importer->context().physical_device, &properties);
    atom = Bytes(properties.limits.nonCoherentAtomSize);
    ASSERT_OK_AND_ASSIGN(std::shared_ptr<LocalCache> cache, LocalCache::Start(client(), *importer));
    ASSERT_OK_AND_ASSIGN(
        const std::unique_ptr<DeviceAllocator> allocator,
        DeviceAllocator::Create(std::move(cache),
                                {.memory = MemoryKind::kHostCached, .granularity = Bytes(4)}));
    ASSERT_THAT(allocator->Allocate(Bytes(1)), IsOk());
    ASSERT_THAT(allocator->Allocate(Bytes(1)), IsOk());
    allocated = allocator->stats().allocated;
  }
};

TEST_F(FlushedMemoryTest, AllocationsShareNoAtom) {
  Bytes allocated;
  Bytes atom;
  ASSERT_NO_FATAL_FAILURE(AllocateTwo(R"(
device gpu
  deviceType discrete
  memoryHeap 1GiB device_local
  memoryHeap 256MiB none
  memoryType 0 device_local
  memoryType 1 host_visible|host_coherent
  memoryType 1 host_visible|host_cached
)",
                                      allocated, atom));
  ASSERT_GT(atom, Bytes(4));
  EXPECT_EQ(allocated, atom + atom);
}

TEST_F(FlushedMemoryTest, WhereNothingIsFlushedGranulesAreAsSmallAsAsked) {
  Bytes allocated;
  Bytes atom;
  ASSERT_NO_FATAL_FAILURE(AllocateTwo(kDiscreteGpu, allocated, atom));
  EXPECT_EQ(allocated, Bytes(8));
}

TEST_F(DeviceAllocatorFaultsTest, ThereIsNoPointerAndContainersUseAnotherResource) {
  ASSERT_OK_AND_ASSIGN(const DeviceAllocation allocation, allocator_->Allocate(KiB(4)));
  EXPECT_THAT(allocation.range.host(), StatusIs(StatusCode::kFailedPrecondition, "host-visible"));
  HostMemoryResource resource(*allocator_, std::pmr::new_delete_resource());
  std::pmr::string text(1000, 'x', &resource);
  EXPECT_FALSE(resource.RangeOf(text.data()).buffer().valid());
  EXPECT_EQ(resource.stats().allocations, 0u);
  EXPECT_EQ(resource.stats().upstream, 1u);
  EXPECT_EQ(allocator_->stats().allocations, 1u);
}

}  // namespace
}  // namespace heapbroker
