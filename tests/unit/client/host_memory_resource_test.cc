// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/host_memory_resource.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/client/vulkan_fixture.h"

namespace heapbroker {
namespace {

class HostMemoryResourceTest : public VulkanImporterTest {
 protected:
  void RefuseEverything() {
    daemon_.RefuseAllocationsWith(absl::ResourceExhaustedError("others hold it"));
  }

  const std::unique_ptr<DeviceAllocator> allocator_ =
      DeviceAllocator::Create(LocalCache::Start(*a_.client, *a_.importer).value(),
                              {.memory = MemoryKind::kHostVisible, .smallest_block = KiB(64)})
          .value();
};

TEST_F(HostMemoryResourceTest, ContainersLiveInBrokeredMemory) {
  HostMemoryResource resource(*allocator_);
  {
    std::pmr::vector<std::pmr::string> texts(&resource);
    for (int i = 0; i < 100; ++i) texts.emplace_back(std::string(100 + i, 'a'));
    EXPECT_EQ(texts[99].size(), 199u);
    EXPECT_EQ(texts[99].back(), 'a');
    EXPECT_EQ(resource.stats().allocations, allocator_->stats().allocations);
    EXPECT_GT(resource.stats().allocations, 100u);
    const BufferRange range = resource.RangeOf(texts[50].data());
    EXPECT_TRUE(range.buffer().valid());
    EXPECT_EQ(*range.host(), texts[50].data());
  }
  EXPECT_EQ(resource.stats().allocations, 0u);
  EXPECT_EQ(allocator_->stats().allocations, 0u);
}

TEST_F(HostMemoryResourceTest, PointersAreAlignedAndOfTheirOwnAlsoWhenEmpty) {
  HostMemoryResource resource(*allocator_);
  void* const empty = resource.allocate(0, 1);
  void* const other = resource.allocate(0, 1);
  EXPECT_NE(empty, other);
  void* const page = resource.allocate(100, 1 << 16);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(page) % (1 << 16), 0u);
  resource.deallocate(page, 100, 1 << 16);
  resource.deallocate(other, 0, 1);
  resource.deallocate(empty, 0, 1);
  EXPECT_EQ(resource.stats().unknown_frees, 0u);
}

TEST_F(HostMemoryResourceTest, WithoutMemoryTheUsualUpstreamThrowsAsTheStandardDemands) {
  HostMemoryResource resource(*allocator_);
  RefuseEverything();
  EXPECT_THROW(static_cast<void>(resource.allocate(1)), std::bad_alloc);
  EXPECT_EQ(resource.stats().allocations, 0u);
}

TEST_F(HostMemoryResourceTest, WithoutMemoryAnotherUpstreamServesAndGetsItsOwnBack) {
  HostMemoryResource resource(*allocator_, std::pmr::new_delete_resource());
  RefuseEverything();
  void* const pointer = resource.allocate(1000);
  static_cast<char*>(pointer)[999] = 1;
  EXPECT_EQ(resource.stats().upstream, 1u);
  EXPECT_FALSE(resource.RangeOf(pointer).buffer().valid());
  resource.deallocate(pointer, 1000);
  EXPECT_EQ(resource.stats().upstream, 0u);
}

TEST_F(HostMemoryResourceTest, ForeignAndSecondFreesAreCountedAndHarmless) {
  HostMemoryResource resource(*allocator_, std::pmr::new_delete_resource());
  int on_the_stack = 0;
  resource.deallocate(&on_the_stack, sizeof(on_the_stack));
  void* const pointer = resource.allocate(100);
  resource.deallocate(pointer, 100);
  resource.deallocate(pointer, 100);
  EXPECT_EQ(resource.stats().unknown_frees, 2u);
  EXPECT_EQ(allocator_->stats().allocations, 0u);
}

TEST_F(HostMemoryResourceTest, ItsEndFreesWhatWasNotDeallocated) {
  {
    HostMemoryResource resource(*allocator_);
    static_cast<void>(resource.allocate(100));
    EXPECT_EQ(allocator_->stats().allocations, 1u);
  }
  EXPECT_EQ(allocator_->stats().allocations, 0u);
}

TEST_F(HostMemoryResourceTest, ThreadsHaveItAtTheSameTime) {
  HostMemoryResource resource(*allocator_);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 50; ++round) {
        std::pmr::vector<std::pmr::string> texts(&resource);
        for (int i = 0; i < 20; ++i) {
          texts.emplace_back(static_cast<size_t>(50 + 100 * i), static_cast<char>('a' + thread));
          if (!resource.RangeOf(texts.back().data()).buffer().valid()) ++wrong;
        }
        static_cast<void>(resource.stats());
        for (const std::pmr::string& text : texts) {
          if (text.find_first_not_of(static_cast<char>('a' + thread)) != text.npos) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(resource.stats().allocations, 0u);
  EXPECT_EQ(resource.stats().unknown_frees, 0u);
  EXPECT_EQ(allocator_->stats().allocations, 0u);
}

TEST_F(HostMemoryResourceTest, IsEqualToItselfOnly) {
  const HostMemoryResource resource(*allocator_);
  const HostMemoryResource other(*allocator_);
  EXPECT_TRUE(resource.is_equal(resource));
  EXPECT_FALSE(resource.is_equal(other));
}

}  // namespace
}  // namespace heapbroker
