// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Ranges out of several blocks, for several threads.
#ifndef CLIENT_SRC_SHARED_RANGES_H_
#define CLIENT_SRC_SHARED_RANGES_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/mutex.h"
#include "heapbroker/range_allocator.h"

namespace heapbroker {

// Sums over all blocks. Each block is looked at by itself, so that the sums agree with
// each other, but need not be those of one moment while others allocate.
struct SharedRangesStats {
  Bytes size{};
  Bytes allocated{};
  Bytes free{};
  Bytes largest_free{};  // Of blocks that are not retired.
  Bytes retired{};       // Part of `size`.
  uint64_t allocations = 0;
  uint32_t blocks = 0;
};

// A RangeAllocator for each block, and a lock for each. A thread stays with the block
// that last served it, and moves on to another one where that is full or in use at
// this moment: threads that allocate at the same time soon have blocks of their own,
// as long as there are several, and none is ever added only because of that.
//
// `Memory` is what lies behind a block; it is kept here so that it goes exactly when
// the last range of it does. Thread-safe.
template <typename Memory>
class SharedRanges {
 public:
  static constexpr uint32_t kMaxBlocks = 4096;

  struct Place {
    uint32_t block = 0;
    AllocatedRange range{};
    Memory* memory = nullptr;  // Lives as long as the range.
  };

  struct Freed {
    bool known = false;  // The handle named a range of that block.
    // Of the block, which is not here any more, if that was its last range.
    std::unique_ptr<Memory> emptied{};
  };

  explicit SharedRanges(Bytes granularity) : granularity_(granularity), blocks_(kMaxBlocks) {}
  ~SharedRanges() {
    for (std::atomic<Block*>& block : blocks_) delete block.load(std::memory_order_relaxed);
  }
  SharedRanges(const SharedRanges&) = delete;
  SharedRanges& operator=(const SharedRanges&) = delete;

  // Empty where no block has room.
  std::optional<Place> Allocate(Bytes size, Bytes alignment) {
    std::atomic<uint32_t>& lane = lanes_[ThisThread() % lanes_.size()].block;
    const uint32_t last = lane.load(std::memory_order_relaxed);
    if (std::optional<Place> place = AllocateIn(last, size, alignment, IfBusy::kSkip)) return place;
    // Those that are in use only if no other one has room.
    for (const IfBusy if_busy : {IfBusy::kSkip, IfBusy::kWait}) {
      const uint32_t end = end_.load(std::memory_order_acquire);
      for (uint32_t block = 0; block < end; ++block) {
        std::optional<Place> place = AllocateIn(block, size, alignment, if_busy);
        if (!place) continue;
        lane.store(block, std::memory_order_relaxed);
        return place;
      }
    }
    return std::nullopt;
  }

  Freed Free(uint32_t index, RangeHandle handle) {
    Block* const block = At(index);
    if (block == nullptr) return {};
    std::unique_ptr<Memory> emptied;
    {
      MutexLock lock(block->mutex);
      const InUse in_use(*block);
      if (!block->ranges || !block->ranges->Free(handle).ok()) return {};
      if (!block->retired) block->refused.store(kNothing, std::memory_order_relaxed);
      if (!block->ranges->empty()) return {.known = true};
      block->ranges.reset();
      block->refused.store(0, std::memory_order_relaxed);
      emptied = std::move(block->memory);
    }
    MutexLock lock(adding_);
    vacant_.push_back(index);
    return {.known = true, .emptied = std::move(emptied)};
  }

  // Adds a block and allocates its first range, so that nobody else can empty it
  // before. Empty, and `memory` is as it was, where there are kMaxBlocks or the range
  // does not fit.
  std::optional<Place> AddBlock(const RangeAllocatorOptions& options,
                                std::unique_ptr<Memory>& memory, Bytes size, Bytes alignment) {
    RangeAllocator ranges(options);
    const std::optional<AllocatedRange> range = ranges.TryAllocate(size, alignment);
    if (!range) return std::nullopt;
    const std::optional<uint32_t> index = TakeVacant();
    if (!index) return std::nullopt;
    Block& block = *At(*index);
    MutexLock lock(block.mutex);
    block.ranges = std::move(ranges);
    block.memory = std::move(memory);
    block.retired = false;
    block.refused.store(kNothing, std::memory_order_relaxed);
    return Place{.block = *index, .range = *range, .memory = block.memory.get()};
  }

  // Nothing more is allocated in blocks whose memory is so. They go when the last of
  // what is allocated in them is freed, as others do.
  void RetireIf(absl::FunctionRef<bool(const Memory&)> is_so) {
    for (uint32_t index = 0; index < end_.load(std::memory_order_acquire); ++index) {
      Block& block = *At(index);
      MutexLock lock(block.mutex);
      if (!block.ranges || !is_so(*block.memory)) continue;
      block.retired = true;
      block.refused.store(0, std::memory_order_relaxed);
    }
  }

  // Empty where the block has no such range.
  std::optional<Bytes> SizeOf(uint32_t index, RangeHandle handle) const {
    Block* const block = At(index);
    if (block == nullptr) return std::nullopt;
    MutexLock lock(block->mutex);
    if (!block->ranges) return std::nullopt;
    const absl::StatusOr<Bytes> size = block->ranges->SizeOf(handle);
    return size.ok() ? std::optional<Bytes>(*size) : std::nullopt;
  }

  // Of all blocks, which are not here any more, whatever is allocated in them.
  std::vector<std::unique_ptr<Memory>> TakeAll() {
    std::vector<std::unique_ptr<Memory>> all;
    for (uint32_t index = 0; index < end_.load(std::memory_order_acquire); ++index) {
      Block& block = *At(index);
      MutexLock lock(block.mutex);
      if (!block.ranges) continue;
      block.ranges.reset();
      block.refused.store(0, std::memory_order_relaxed);
      all.push_back(std::move(block.memory));
    }
    return all;
  }

  SharedRangesStats Stats() const {
    SharedRangesStats sum;
    for (uint32_t index = 0; index < end_.load(std::memory_order_acquire); ++index) {
      Block& block = *At(index);
      MutexLock lock(block.mutex);
      if (!block.ranges) continue;
      const RangeAllocatorStats stats = block.ranges->Stats();
      sum.size += stats.size;
      sum.allocated += stats.allocated;
      sum.free += stats.free;
      if (!block.retired) sum.largest_free = std::max(sum.largest_free, stats.largest_free);
      sum.allocations += stats.allocations;
      ++sum.blocks;
      if (block.retired) sum.retired += stats.size;
    }
    return sum;
  }

 private:
  enum class IfBusy { kSkip, kWait };
  static constexpr uint64_t kNothing = std::numeric_limits<uint64_t>::max();

  // Never goes before the SharedRanges, so that a thread that is late finds it empty.
  struct alignas(64) Block {
    // Hints, which may be out of date: somebody has the mutex; and a request of this
    // size found no room, and nothing was freed since.
    std::atomic<bool> busy = false;
    std::atomic<uint64_t> refused = kNothing;
    Mutex mutex;
    std::optional<RangeAllocator> ranges ABSL_GUARDED_BY(mutex);  // Empty: no block.
    std::unique_ptr<Memory> memory ABSL_GUARDED_BY(mutex);
    bool retired ABSL_GUARDED_BY(mutex) = false;
  };
  struct InUse {
    explicit InUse(Block& used) : block(used) { block.busy.store(true, std::memory_order_relaxed); }
    ~InUse() { block.busy.store(false, std::memory_order_relaxed); }
    Block& block;
  };
  // The block that served some threads last. A line of its own, so that threads do not
  // share one.
  struct alignas(64) Lane {
    std::atomic<uint32_t> block = 0;
  };

  static uint32_t ThisThread() {
    static std::atomic<uint32_t> threads = 0;
    static thread_local const uint32_t number = threads.fetch_add(1, std::memory_order_relaxed);
    return number;
  }

  Block* At(uint32_t index) const {
    if (index >= end_.load(std::memory_order_acquire)) return nullptr;
    return blocks_[index].load(std::memory_order_acquire);
  }

  std::optional<Place> AllocateIn(uint32_t index, Bytes size, Bytes alignment, IfBusy if_busy) {
    Block* const block = At(index);
    if (block == nullptr) return std::nullopt;
    if (size.count() >= block->refused.load(std::memory_order_relaxed)) return std::nullopt;
    if (if_busy == IfBusy::kSkip && block->busy.load(std::memory_order_relaxed)) {
      return std::nullopt;
    }
    MutexLock lock(block->mutex);
    const InUse in_use(*block);
    if (!block->ranges || block->retired) return std::nullopt;
    const std::optional<AllocatedRange> range = block->ranges->TryAllocate(size, alignment);
    if (!range) {
      Refuse(*block, size, alignment);
      return std::nullopt;
    }
    return Place{.block = index, .range = *range, .memory = block->memory.get()};
  }

  // Only of requests without padding can be said what larger ones would find.
  void Refuse(Block& block, Bytes size, Bytes alignment)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(block.mutex) {
    if (alignment > granularity_) return;
    const uint64_t refused = block.refused.load(std::memory_order_relaxed);
    block.refused.store(std::min(refused, size.count()), std::memory_order_relaxed);
  }

  std::optional<uint32_t> TakeVacant() {
    MutexLock lock(adding_);
    if (!vacant_.empty()) {
      const uint32_t index = vacant_.back();
      vacant_.pop_back();
      return index;
    }
    const uint32_t end = end_.load(std::memory_order_relaxed);
    if (end == kMaxBlocks) return std::nullopt;
    blocks_[end].store(new Block(), std::memory_order_release);
    end_.store(end + 1, std::memory_order_release);
    return end;
  }

  const Bytes granularity_;
  std::array<Lane, 16> lanes_;
  std::vector<std::atomic<Block*>> blocks_;
  std::atomic<uint32_t> end_ = 0;  // Of those that were ever used.
  Mutex adding_;
  std::vector<uint32_t> vacant_ ABSL_GUARDED_BY(adding_);
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_SHARED_RANGES_H_
