// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a forked child of a process with imported memory can do, and cannot.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <memory_resource>
#include <new>
#include <thread>

#include "gtest/gtest.h"
#include "heapbroker/device_allocator.h"
#include "heapbroker/host_memory_resource.h"
#include "heapbroker/memory_manager.h"
#include "heapbroker/transfers.h"
#include "tests/support/process_facts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/vulkan_fixture.h"

namespace heapbroker {
namespace {

// All that a program may have in hand.
struct Everything {
  explicit Everything(const FakeDaemon& daemon) : vulkan(daemon) {
    lease = vulkan.client->Allocate({.size = KiB(4), .memory = MemoryKind::kHostVisible}).value();
    buffer = vulkan.importer->Import(*lease.block(), kUsage).value();
    manager = MemoryManager::Create(*vulkan.client, *vulkan.importer,
                                    {.constant = {.name = "weights", .size = KiB(4)},
                                     .non_constant = {{.size = KiB(4)}},
                                     .kernel_temporary = {.size = KiB(4)},
                                     .kernel_temporary_overflow = OverflowPlan{}})
                  .value();
    transfers = Transfers::Create(*vulkan.client, *vulkan.importer).value();
    cache = LocalCache::Start(*vulkan.client, *vulkan.importer).value();
    allocator = DeviceAllocator::Create(cache, {.memory = MemoryKind::kHostVisible}).value();
    resource = std::make_unique<HostMemoryResource>(*allocator);
    allocated = resource->allocate(100);
  }

  VulkanClient vulkan;
  Lease lease;
  DeviceBuffer buffer;
  std::unique_ptr<MemoryManager> manager;
  std::unique_ptr<Transfers> transfers;
  std::shared_ptr<LocalCache> cache;
  std::unique_ptr<DeviceAllocator> allocator;
  std::unique_ptr<HostMemoryResource> resource;
  void* allocated = nullptr;
};

class ForkedChildTest : public VulkanFixture {
 protected:
  // Whether `works` says so in a child, and not only after a very long time.
  template <typename Works>
  bool InAChild(Works works) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(works() ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status == 0;
  }

  std::unique_ptr<Everything> all_ = std::make_unique<Everything>(daemon_);
};

TEST_F(ForkedChildTest, GetsAnErrorFromWhateverNeedsTheDaemonOrTheDriver) {
  EXPECT_TRUE(InAChild([&] {
    VulkanImporter& importer = *all_->vulkan.importer;
    const absl::Status refused[] = {
        importer.Import(*all_->lease.block(), kUsage).status(),
        importer.AcquireAll({all_->buffer}),
        importer.ReleaseAll({all_->buffer}),
        all_->transfers->Upload(all_->buffer, Bytes(0), "abc", Bytes(3)),
        all_->transfers->ReleaseStaging(),
        all_->manager->get_constant_allocator()->Write(Bytes(0), "abc", Bytes(3)),
        all_->manager->get_constant_allocator()->Seal(),
        all_->manager->get_kernel_temporary_allocator()->Allocate(MiB(1), Bytes(1)).status(),
        all_->allocator->Allocate(Bytes(1)).status(),
        all_->cache->Trim()};
    for (const absl::Status& status : refused) {
      if (!absl::IsFailedPrecondition(status)) return false;
    }
    return true;
  }));
}

TEST_F(ForkedChildTest, ItsContainersFindNoMemoryAndFreeNone) {
  EXPECT_TRUE(InAChild([&] {
    all_->resource->deallocate(all_->allocated, 100);
    if (all_->resource->RangeOf(all_->allocated).buffer().valid()) return false;
    try {
      static_cast<void>(all_->resource->allocate(1));
    } catch (const std::bad_alloc&) {
      return true;
    }
    return false;
  }));
  EXPECT_EQ(all_->resource->stats().allocations, 1u);
}

TEST_F(ForkedChildTest, SharesWhatIsImportedAndCanDropEverythingWithoutTakingItFromTheParent) {
  const size_t leased = daemon_.leased_blocks();
  EXPECT_TRUE(InAChild([&] {
    *static_cast<char*>(all_->buffer.mapped()) = 7;
    all_.reset();
    return true;
  }));
  EXPECT_EQ(*static_cast<char*>(all_->buffer.mapped()), 7);
  EXPECT_EQ(daemon_.leased_blocks(), leased);
  EXPECT_THAT(all_->vulkan.importer->AcquireAll({all_->buffer}), IsOk());
  EXPECT_THAT(all_->vulkan.importer->ReleaseAll({all_->buffer}), IsOk());
  EXPECT_THAT(all_->manager->get_constant_allocator()->Write(Bytes(0), "abc", Bytes(3)), IsOk());
  EXPECT_THAT(all_->allocator->Allocate(Bytes(1)), IsOk());
  all_.reset();
  EXPECT_EQ(daemon_.leased_blocks(), 2u) << "what this daemon made of the segment stays";
}

TEST_F(ForkedChildTest, CanDropEverythingWhileThreadsOfTheParentWaitForTheQueue) {
  VulkanImporter& importer = *all_->vulkan.importer;
  std::atomic<bool> entered = false;
  std::atomic<bool> go_on = false;
  std::thread first([&] {
    EXPECT_THAT(importer.SubmitAndWait([&](VkCommandBuffer) {
      entered = true;
      while (!go_on) std::this_thread::yield();
    }),
                IsOk());
  });
  EXPECT_TRUE(WaitFor([&] { return entered.load(); }));
  std::atomic<pid_t> thread = 0;
  std::thread second([&] {
    thread = gettid();
    EXPECT_THAT(importer.SubmitAndWait([](VkCommandBuffer) {}), IsOk());
  });
  EXPECT_TRUE(WaitFor([&] { return thread != 0 && Sleeps(thread).value_or(false); }));
  EXPECT_TRUE(InAChild([&] {
    all_.reset();
    return true;
  }));
  go_on = true;
  first.join();
  second.join();
}

}  // namespace
}  // namespace heapbroker
