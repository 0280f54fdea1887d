// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_manager.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/block_allocators.h"
#include "client/src/constant_allocator.h"
#include "common/base/status_macros.h"
#include "heapbroker/lease.h"
#include "heapbroker/segment.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {
namespace {

// What kernels and copies do with the memory of a model.
constexpr VkBufferUsageFlags kUsage =
    VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;

absl::Status CheckPlan(const MemoryPlan& plan) {
  if (plan.constant_name.empty() != (plan.constant_size == Bytes(0))) {
    return absl::InvalidArgumentError(
        "MemoryPlan: constant_name and constant_size must both be set, or neither");
  }
  for (size_t i = 0; i < plan.non_constant_sizes.size(); ++i) {
    if (plan.non_constant_sizes[i] == Bytes(0)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "MemoryPlan: non_constant_sizes[", i, "] is 0; every memory id needs at least a byte"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Segment> OpenConstants(Client& client, const MemoryPlan& plan) {
  if (plan.constant_size == Bytes(0)) return Segment();
  return client.OpenSegment({.name = plan.constant_name,
                             .size = plan.constant_size,
                             .memory = plan.constant_kind,
                             .timeout = plan.constant_timeout});
}

// Everything but the segment: the planned buffers in order, then the arenas that
// have a size.
std::vector<AllocationRequest> RequestsOf(const MemoryPlan& plan) {
  std::vector<AllocationRequest> requests;
  for (const Bytes size : plan.non_constant_sizes) {
    requests.push_back(
        {.size = size, .alignment = kMaxBlockAlignment, .memory = plan.non_constant_kind});
  }
  const std::pair<Bytes, MemoryKind> arenas[] = {
      {plan.runtime_size, plan.runtime_kind},
      {plan.kernel_temporary_size, plan.kernel_temporary_kind}};
  for (const auto& [size, kind] : arenas) {
    if (size == Bytes(0)) continue;
    requests.push_back({.size = size, .alignment = kMaxBlockAlignment, .memory = kind});
  }
  return requests;
}

}  // namespace

// Members end in the opposite order: buffers before the leases below them.
struct MemoryManager::State {
  explicit State(VulkanImporter& vulkan_importer) : importer(vulkan_importer) {}
  ~State();

  absl::Status ImportLeases(const MemoryPlan& plan);
  absl::Status Acquire();

  VulkanImporter& importer;
  std::vector<Lease> leases;
  std::unique_ptr<SegmentAllocator> constant;
  std::unique_ptr<PlannedAllocator> non_constant;
  std::unique_ptr<BufferArena> runtime;
  std::unique_ptr<BufferArena> kernel_temporary;
  std::vector<DeviceBuffer> leased;    // In the order of `leases`.
  std::vector<DeviceBuffer> acquired;  // Owned by this device's queue family now.
};

absl::Status MemoryManager::State::ImportLeases(const MemoryPlan& plan) {
  for (const Lease& lease : leases) {
    HB_ASSIGN_OR_RETURN(DeviceBuffer buffer, importer.Import(*lease.block(), kUsage));
    leased.push_back(std::move(buffer));
  }
  auto next = leased.begin() + static_cast<std::ptrdiff_t>(plan.non_constant_sizes.size());
  non_constant =
      std::make_unique<PlannedAllocator>(std::vector<DeviceBuffer>(leased.begin(), next));
  runtime = std::make_unique<BufferArena>(plan.runtime_size == Bytes(0) ? DeviceBuffer() : *next++);
  kernel_temporary = std::make_unique<BufferArena>(
      plan.kernel_temporary_size == Bytes(0) ? DeviceBuffer() : *next++);
  return absl::OkStatus();
}

absl::Status MemoryManager::State::Acquire() {
  std::vector<DeviceBuffer> all = constant->buffers();
  all.insert(all.end(), leased.begin(), leased.end());
  HB_RETURN_IF_ERROR(importer.AcquireAll(all));
  acquired = std::move(all);
  return absl::OkStatus();
}

MemoryManager::State::~State() {
  // Nobody is left to hear of errors; the memory goes back in any case.
  importer.ReleaseAll(acquired).IgnoreError();
  acquired.clear();
  leased.clear();
  kernel_temporary.reset();
  runtime.reset();
  non_constant.reset();
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
  // First, because it may wait for long: a process that waits should hold nothing
  // that the one it waits for could need.
  HB_ASSIGN_OR_RETURN(Segment segment, OpenConstants(session, plan));
  HB_ASSIGN_OR_RETURN(state->constant,
                      SegmentAllocator::Create(session, importer, std::move(segment), kUsage));
  const std::vector<AllocationRequest> requests = RequestsOf(plan);
  if (!requests.empty()) {
    HB_ASSIGN_OR_RETURN(state->leases, session.AllocateAll(requests));
  }
  HB_RETURN_IF_ERROR(state->ImportLeases(plan));
  HB_RETURN_IF_ERROR(state->Acquire());
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
