// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/device_allocator.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/src/arena.h"
#include "client/src/block_steps.h"
#include "client/src/block_store.h"
#include "client/src/buffer_ranges.h"
#include "client/src/importing_device.h"
#include "client/src/leased_memory.h"
#include "client/src/shared_ranges.h"
#include "client/transport/call_limits.h"
#include "client/transport/process_mark.h"
#include "client/transport/turn.h"
#include "common/base/status_macros.h"
#include "heapbroker/memory_refusal.h"

namespace heapbroker {
namespace {

using Ranges = SharedRanges<LeasedMemory>;
using Block = BlockStore::Block;

absl::Status CheckOptions(const DeviceAllocatorOptions& options) {
  const uint64_t granularity = options.granularity.count();
  if (!IsPowerOfTwo(granularity) || granularity < 4 || options.granularity > kMaxBlockAlignment) {
    return absl::InvalidArgumentError(absl::StrCat("DeviceAllocatorOptions.granularity is ",
                                                   granularity, "; a power of two from 4 to ",
                                                   kMaxBlockAlignment.count(), " is needed"));
  }
  if (options.smallest_block == Bytes(0) || options.smallest_block > options.largest_block) {
    return absl::InvalidArgumentError(absl::StrCat("DeviceAllocatorOptions.smallest_block is ",
                                                   options.smallest_block.count(),
                                                   "; more than zero and at most largest_block (",
                                                   options.largest_block.count(), ") is needed"));
  }
  return absl::OkStatus();
}

// Memory that is not coherent is flushed by whole atoms: with smaller granules one
// allocation's flush would reach into another, and undo what is being written there.
Bytes GranularityOn(const ImportingDevice& device, Bytes granularity) {
  constexpr VkMemoryPropertyFlags kCoherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  for (uint32_t type = 0; type < device.memory.memoryTypeCount; ++type) {
    const VkMemoryPropertyFlags flags = device.memory.memoryTypes[type].propertyFlags;
    if ((flags & (kVisible | kCoherent)) == kVisible) {
      return std::max(granularity, device.non_coherent_atom);
    }
  }
  return granularity;
}

std::string TextOf(const MemoryChoice& memory) {
  if (const auto* kind = std::get_if<MemoryKind>(&memory)) {
    return absl::StrCat("kind ", static_cast<int>(*kind));
  }
  if (const auto* key = std::get_if<HeapKey>(&memory)) return absl::StrCat("key ", key->text);
  return absl::StrCat("type ", std::get<MemoryTypeIndex>(memory).index);
}

std::string KindOf(const DeviceAllocatorOptions& options) {
  const int handle_type = options.handle_type ? static_cast<int>(*options.handle_type) : -1;
  return absl::StrCat(options.device_index, " ", handle_type, " ", options.device_address ? 1 : 0,
                      " ", TextOf(options.memory));
}

// The largest block that there is room for; unset where that is not what was missing.
std::optional<Bytes> RoomFor(const MemoryRefusal& refusal) {
  switch (refusal.limit) {
    case MemoryRefusal::Limit::kHeapBudget:
    case MemoryRefusal::Limit::kMaxAllocationSize:
    case MemoryRefusal::Limit::kDriver:
      return Bytes(refusal.largest_now);
    default:
      return std::nullopt;
  }
}

// What a block must have so that the request fits in it, wherever it lies.
std::optional<Bytes> NeededFor(Bytes size, Bytes alignment, Bytes granularity) {
  const std::optional<Bytes> rounded = AlignUp(size, granularity);
  if (!rounded || alignment <= kMaxBlockAlignment) return rounded;
  return CheckedAdd(*rounded, alignment);
}

}  // namespace

class DeviceAllocator::State {
 public:
  State(std::shared_ptr<LocalCache> local_cache, BlockStore& block_store,
        const DeviceAllocatorOptions& allocator_options)
      : cache_(std::move(local_cache)),
        store_(block_store),
        options_(allocator_options),
        kind_(KindOf(options_)),
        ranges_(options_.granularity) {}
  ~State() { store_.GiveBack(ranges_.TakeAll()).IgnoreError(); }

  absl::StatusOr<Ranges::Place> Allocate(Bytes size, Bytes alignment, const CallOptions& call);
  // All granules of the place, of `size` bytes.
  absl::Status Zero(const Ranges::Place& place, Bytes size);
  absl::Status Free(DeviceAllocationHandle handle);
  DeviceAllocatorStats stats();
  const ProcessMark& process() const { return store_.process(); }

 private:
  // Cuts nothing more out of blocks whose session was lost: no daemon accounts for them.
  void RetireLost();
  // Out of the blocks that are here; empty where none has room.
  std::optional<Ranges::Place> Cut(Bytes size, Bytes alignment);
  // By one thread at a time.
  absl::StatusOr<Ranges::Place> Grow(Bytes size, Bytes alignment, const CallLimits& limits);
  absl::StatusOr<Block> NextBlock(Bytes needed, const CallLimits& limits);
  absl::StatusOr<Block> LeaseBlock(Bytes size, std::optional<absl::Duration> max_wait,
                                   const CallLimits& limits);
  absl::StatusOr<Ranges::Place> Add(Block block, Bytes size, Bytes alignment);
  BlockStepLimits StepLimits() const;

  const std::shared_ptr<LocalCache> cache_;  // Keeps the store.
  BlockStore& store_;
  const DeviceAllocatorOptions options_;
  const std::string kind_;
  Ranges ranges_;
  std::atomic<uint64_t> leased_ = 0;
  std::atomic<uint64_t> peak_leased_ = 0;
  Turn growing_;
};

void DeviceAllocator::State::RetireLost() {
  ranges_.RetireIf([](const LeasedMemory& memory) { return memory.lease.lost(); });
}

std::optional<Ranges::Place> DeviceAllocator::State::Cut(Bytes size, Bytes alignment) {
  while (true) {
    const std::optional<Ranges::Place> place = ranges_.Allocate(size, alignment);
    // Asked of the lease itself: the watch that could tell of the loss may be busy with
    // something else, or have ended.
    if (!place || !place->memory->lease.lost()) return place;
    RetireLost();
    Free({.range = place->range.handle, .block = place->block}).IgnoreError();
  }
}

absl::StatusOr<Ranges::Place> DeviceAllocator::State::Allocate(Bytes size, Bytes alignment,
                                                               const CallOptions& call) {
  HB_RETURN_IF_ERROR(CheckAlignment(alignment));
  size = std::max(size, Bytes(1));
  if (const std::optional<Ranges::Place> place = Cut(size, alignment)) return *place;
  const CallLimits limits = store_.LimitsOf(call);
  TurnHolder turn(growing_, limits, "another thread leased a block");
  const absl::StatusOr<Ranges::Place> grown =
      turn.status().ok() ? Grow(size, alignment, limits) : turn.status();
  if (grown.ok()) return grown;
  // Somebody may have freed enough while this thread waited, which nobody tells it.
  if (const std::optional<Ranges::Place> place = Cut(size, alignment)) return *place;
  return grown;
}

absl::StatusOr<Ranges::Place> DeviceAllocator::State::Grow(Bytes size, Bytes alignment,
                                                           const CallLimits& limits) {
  // Somebody may have grown, or freed, since this thread found nothing.
  if (const std::optional<Ranges::Place> place = Cut(size, alignment)) return *place;
  const std::optional<Bytes> needed = NeededFor(size, alignment, options_.granularity);
  if (!needed) {
    return absl::ResourceExhaustedError(absl::StrCat("no block can hold ", size.count(),
                                                     " bytes aligned to ", alignment.count(),
                                                     ": together they pass 2^64 - 1"));
  }
  Block block = store_.TakeIdle(kind_, *needed);
  if (block == nullptr) {
    HB_ASSIGN_OR_RETURN(block, NextBlock(*needed, limits));
  }
  return Add(std::move(block), size, alignment);
}

absl::StatusOr<Block> DeviceAllocator::State::NextBlock(Bytes needed, const CallLimits& limits) {
  std::optional<Bytes> most;  // That the last refusal leaves room for.
  for (const Bytes step : BlockSteps(StepLimits(), Bytes(leased_.load()), needed)) {
    // For each question the daemon may wait until clients have given back what they keep
    // idle, or have not.
    if (most && step > *most && step != needed) continue;
    absl::StatusOr<Block> block = LeaseBlock(step, absl::ZeroDuration(), limits);
    if (!absl::IsResourceExhausted(block.status())) return block;
    const std::optional<MemoryRefusal> refusal = RefusalOf(block.status());
    if (!refusal) {
      // Nothing that a smaller block has less of: this process lacks a descriptor, or an
      // import. Blocks that nobody uses have both.
      if (!store_.HasSpareBlocks()) return block;
      break;
    }
    if (step == needed && refusal->never_fits) return block;
    most = RoomFor(*refusal);
  }
  // Memory of another kind may be what is missing. What goes wrong there, the request
  // after it is told as well.
  store_.Trim(Bytes(0), limits).IgnoreError();
  return LeaseBlock(needed, options_.max_wait, limits);
}

absl::StatusOr<Block> DeviceAllocator::State::LeaseBlock(Bytes size,
                                                         std::optional<absl::Duration> max_wait,
                                                         const CallLimits& limits) {
  const AllocationRequest request{.size = size,
                                  .alignment = kMaxBlockAlignment,
                                  .memory = options_.memory,
                                  .handle_type = options_.handle_type,
                                  .device_address = options_.device_address};
  const AllocateOptions call{
      .device_index = options_.device_index, .priority = options_.priority, .max_wait = max_wait};
  return store_.LeaseBlock(request, call, kind_, limits);
}

BlockStepLimits DeviceAllocator::State::StepLimits() const {
  BlockStepLimits limits{.smallest = options_.smallest_block, .largest = options_.largest_block};
  const std::vector<BrokerDevice> devices = store_.devices();
  if (options_.device_index < devices.size()) {
    limits.max_allocation = devices[options_.device_index].max_allocation_size;
  }
  return limits;
}

absl::StatusOr<Ranges::Place> DeviceAllocator::State::Add(Block block, Bytes size,
                                                          Bytes alignment) {
  const uint64_t address = AddressOf(WholeOf(block->buffer));
  const Bytes granularity = options_.granularity;
  const Bytes usable = Bytes(block->size.count() & ~(granularity.count() - 1));
  std::optional<Ranges::Place> place;
  if (address % granularity.count() == 0) {
    place = ranges_.AddBlock({.size = usable, .granularity = granularity, .base_address = address},
                             block, size, alignment);
  }
  if (!place) {
    const uint64_t id = block->lease.facts().block_id;
    store_.Leave(std::move(block));
    return absl::ResourceExhaustedError(absl::StrCat(
        "block ", id, " of ", usable.count(), " bytes, which begins at address ", address,
        ", cannot be cut into granules of ", granularity.count(), " for ", size.count(),
        " bytes aligned to ", alignment.count(), ", or it is one more than the ",
        Ranges::kMaxBlocks, " that an allocator can have"));
  }
  // Only whoever grows adds, so that the peak cannot be missed.
  const uint64_t leased = leased_.fetch_add(usable.count()) + usable.count();
  peak_leased_.store(std::max(peak_leased_.load(), leased));
  return *place;
}

absl::Status DeviceAllocator::State::Free(DeviceAllocationHandle handle) {
  Ranges::Freed freed = ranges_.Free(handle.block, handle.range);
  if (!freed.known) {
    return absl::NotFoundError(
        "no allocation here has this handle: it was freed before, or it is another allocator's");
  }
  if (freed.emptied == nullptr) return absl::OkStatus();
  leased_.fetch_sub(freed.emptied->size.count() & ~(options_.granularity.count() - 1));
  store_.Leave(std::move(freed.emptied));
  return absl::OkStatus();
}

absl::Status DeviceAllocator::State::Zero(const Ranges::Place& place, Bytes size) {
  // Nobody looks at the place of an empty allocation, and Vulkan fills no empty range.
  if (size == Bytes(0)) return absl::OkStatus();
  const BufferRange range(place.memory->buffer, place.range.offset,
                          *AlignUp(size, options_.granularity));
  if (range.host_visible()) {
    HB_ASSIGN_OR_RETURN(void* const host, range.host());
    std::memset(host, 0, range.size().count());
    return range.Flush();
  }
  return store_.importer().SubmitAndWait([&](VkCommandBuffer commands) {
    vkCmdFillBuffer(commands, range.buffer().handle(), range.offset().count(), range.size().count(),
                    0);
    const VkMemoryBarrier barrier{
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &barrier, 0, nullptr, 0,
                         nullptr);
  });
}

DeviceAllocatorStats DeviceAllocator::State::stats() {
  // Nobody may have allocated since the loss.
  RetireLost();
  const SharedRangesStats sum = ranges_.Stats();
  return {.leased = sum.size,
          .peak_leased = Bytes(peak_leased_.load()),
          .allocated = sum.allocated,
          .free = sum.free,
          .largest_free = sum.largest_free,
          .lost = sum.retired,
          .allocations = sum.allocations,
          .blocks = sum.blocks};
}

DeviceAllocator::DeviceAllocator(std::unique_ptr<State> state) : state_(std::move(state)) {}

DeviceAllocator::~DeviceAllocator() {
  // Another thread's lock would never be free.
  if (state_->process().forked()) static_cast<void>(state_.release());
}

absl::StatusOr<std::unique_ptr<DeviceAllocator>> DeviceAllocator::Create(
    std::shared_ptr<LocalCache> cache, const DeviceAllocatorOptions& options) {
  if (cache == nullptr) {
    return absl::InvalidArgumentError("DeviceAllocator::Create needs a cache, and got null");
  }
  HB_RETURN_IF_ERROR(CheckOptions(options));
  BlockStore& store = *cache->store_;
  DeviceAllocatorOptions here = options;
  here.granularity = GranularityOn(ReadImportingDevice(store.importer().context().physical_device),
                                   options.granularity);
  return std::unique_ptr<DeviceAllocator>(
      new DeviceAllocator(std::make_unique<State>(std::move(cache), store, here)));
}

absl::StatusOr<DeviceAllocation> DeviceAllocator::Allocate(Bytes size, Bytes alignment,
                                                           Contents contents,
                                                           const CallOptions& call) {
  HB_RETURN_IF_ERROR(state_->process().Check());
  HB_ASSIGN_OR_RETURN(const Ranges::Place place, state_->Allocate(size, alignment, call));
  const DeviceAllocation allocation{
      .range = BufferRange(place.memory->buffer, place.range.offset, size),
      .handle = {.range = place.range.handle, .block = place.block}};
  if (contents == Contents::kUndefined) return allocation;
  const absl::Status zeroed = state_->Zero(place, size);
  if (zeroed.ok()) return allocation;
  state_->Free(allocation.handle).IgnoreError();
  return zeroed;
}

absl::Status DeviceAllocator::Free(DeviceAllocationHandle handle) {
  HB_RETURN_IF_ERROR(state_->process().Check());
  return state_->Free(handle);
}

DeviceAllocatorStats DeviceAllocator::stats() const {
  return state_->process().forked() ? DeviceAllocatorStats() : state_->stats();
}

}  // namespace heapbroker
