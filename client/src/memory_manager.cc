// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_manager.h"

#include <utility>
#include <vector>

#include "client/src/block_allocators.h"
#include "client/src/buffer_ranges.h"
#include "client/src/constant_allocator.h"
#include "client/src/plan_requests.h"
#include "client/transport/call_limits.h"
#include "common/base/status_macros.h"
#include "heapbroker/lease.h"
#include "heapbroker/segment.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {
namespace {

// Hands out the leased buffers in the order in which the plan asked for them.
class NextBuffer {
 public:
  explicit NextBuffer(const std::vector<DeviceBuffer>& buffers) : next_(buffers.begin()) {}

  // Of no buffer where nothing was asked for.
  BufferRange For(const ArenaPlan& arena) {
    return arena.size == Bytes(0) ? BufferRange() : WholeOf(*next_++);
  }

 private:
  std::vector<DeviceBuffer>::const_iterator next_;
};

}  // namespace

// Members end in the opposite order: buffers before the leases below them.
struct MemoryManager::State {
  explicit State(VulkanImporter& vulkan_importer) : importer(vulkan_importer) {}
  ~State();

  // All but the allocators that make no call.
  absl::Status Make(Client& client, const MemoryPlan& plan);
  // Gives back what was made so far, without waiting for the daemon: whoever makes a plan
  // has no more time than it said.
  void GiveBackLater();

  absl::Status LeaseAndImport(Client& client, const MemoryPlan& plan, const CallLimits& limits);
  absl::Status Acquire();
  void MakeAllocators(const Client& client, const MemoryPlan& plan);

  VulkanImporter& importer;
  std::vector<Lease> leases;
  std::vector<DeviceBuffer> leased;  // In the order of `leases`.
  std::unique_ptr<SegmentAllocator> constant;
  std::unique_ptr<PlannedAllocator> non_constant;
  std::unique_ptr<BufferArena> runtime;
  std::unique_ptr<BufferArena> kernel_temporary;
  std::vector<DeviceBuffer> acquired;  // Owned by this device's queue family now.
};

absl::Status MemoryManager::State::LeaseAndImport(Client& client, const MemoryPlan& plan,
                                                  const CallLimits& limits) {
  const std::vector<AllocationRequest> requests = LeasesOf(plan);
  if (requests.empty()) return absl::OkStatus();
  AllocateOptions options = plan.options;
  options.timeout = limits.left();
  HB_ASSIGN_OR_RETURN(leases, client.AllocateAll(requests, options));
  std::vector<const MemoryBlock*> blocks;
  for (const Lease& lease : leases) blocks.push_back(lease.block().get());
  HB_RETURN_IF_ERROR(MemoryBlock::FetchAll(blocks, LeftOf(limits)));
  for (const Lease& lease : leases) {
    HB_ASSIGN_OR_RETURN(
        DeviceBuffer buffer,
        importer.Import(*lease.block(), ArenaUsage(lease.facts(), importer.context()),
                        LeftOf(limits)));
    leased.push_back(std::move(buffer));
  }
  return absl::OkStatus();
}

absl::Status MemoryManager::State::Acquire() {
  std::vector<DeviceBuffer> all = constant->buffers();
  all.insert(all.end(), leased.begin(), leased.end());
  HB_RETURN_IF_ERROR(importer.AcquireAll(all));
  acquired = std::move(all);
  return absl::OkStatus();
}

void MemoryManager::State::MakeAllocators(const Client& client, const MemoryPlan& plan) {
  NextBuffer next(leased);
  std::vector<PlannedAllocator::Memory> memories;
  for (const ArenaPlan& arena : plan.non_constant) {
    memories.push_back({.range = next.For(arena), .name = arena.name});
  }
  non_constant = std::make_unique<PlannedAllocator>(std::move(memories));
  runtime = std::make_unique<BufferArena>(next.For(plan.runtime));
  const BufferRange temporary = next.For(plan.kernel_temporary);
  if (!plan.kernel_temporary_overflow) {
    kernel_temporary = std::make_unique<BufferArena>(temporary);
    return;
  }
  kernel_temporary = std::make_unique<BufferArena>(
      temporary, *plan.kernel_temporary_overflow,
      std::make_unique<FurtherBlocks>(client, importer, FurtherLeaseOf(plan),
                                      FurtherOptionsOf(plan)));
}

absl::Status MemoryManager::State::Make(Client& client, const MemoryPlan& plan) {
  Segment segment;
  if (!plan.constant.name.empty()) {
    HB_ASSIGN_OR_RETURN(segment, client.OpenSegment(SegmentOf(plan)));
  }
  // Waiting for whoever fills the segment has a time of its own.
  const CallLimits limits(plan.options.timeout.value_or(client.call_timeout()),
                          plan.options.cancellation);
  HB_ASSIGN_OR_RETURN(constant,
                      SegmentAllocator::Create(client, importer, std::move(segment), limits));
  HB_RETURN_IF_ERROR(LeaseAndImport(client, plan, limits));
  return Acquire();
}

void MemoryManager::State::GiveBackLater() {
  leased.clear();
  for (Lease& lease : leases) lease.ReleaseLater();
  if (constant != nullptr) constant->CloseLater();
}

MemoryManager::State::~State() {
  // Nobody is left to hear of errors; the memory goes back in any case.
  importer.ReleaseAll(acquired).IgnoreError();
  acquired.clear();
  kernel_temporary.reset();
  leased.clear();
  ReleaseAll(std::move(leases)).IgnoreError();
}

MemoryManager::MemoryManager(std::unique_ptr<State> state) : state_(std::move(state)) {}
MemoryManager::~MemoryManager() = default;

absl::StatusOr<std::unique_ptr<MemoryManager>> MemoryManager::Create(const Client& client,
                                                                     VulkanImporter& importer,
                                                                     const MemoryPlan& plan) {
  HB_RETURN_IF_ERROR(CheckPlan(plan));
  Client session = client;
  auto state = std::make_unique<State>(importer);
  const absl::Status made = state->Make(session, plan);
  if (!made.ok()) {
    state->GiveBackLater();
    return made;
  }
  state->MakeAllocators(session, plan);
  return std::unique_ptr<MemoryManager>(new MemoryManager(std::move(state)));
}

ConstantAllocator* MemoryManager::get_constant_allocator() const { return state_->constant.get(); }

HierarchicalAllocator* MemoryManager::get_non_constant_allocator() const {
  return state_->non_constant.get();
}

ArenaAllocator* MemoryManager::get_runtime_allocator() const { return state_->runtime.get(); }

ArenaAllocator* MemoryManager::get_kernel_temporary_allocator() const {
  return state_->kernel_temporary.get();
}

}  // namespace heapbroker
