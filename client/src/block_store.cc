// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/block_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/buffer_ranges.h"
#include "client/transport/cancel_hook.h"
#include "client/transport/start_thread.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

using Clock = std::chrono::steady_clock;

std::optional<std::chrono::nanoseconds> Finite(absl::Duration duration) {
  // The clock cannot count further than this.
  if (duration > absl::Hours(24 * 365 * 100)) return std::nullopt;
  return absl::ToChronoNanoseconds(duration);
}

void Append(std::vector<BlockStore::Block>& to, std::vector<BlockStore::Block> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// As the session that it is of has it: the client may be in the next one by now.
uint32_t HeapOf(const MemoryBlock& block) {
  const std::vector<BrokerMemoryType>& types = block.device().memory_types;
  const uint32_t type = block.facts().memory_type_index;
  return type < types.size() ? types[type].heap_index : 0;
}

}  // namespace

BlockStore::BlockStore(const Client& client, VulkanImporter& importer,
                       const LocalCacheLimits& limits)
    : client_(client),
      importer_(importer),
      max_idle_(Finite(limits.max_idle)),
      max_bytes_(limits.max_bytes) {}

BlockStore::~BlockStore() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
  watch_.reset();
  Trim(Bytes(0), LimitsOf({})).IgnoreError();
}

absl::Status BlockStore::Start(WatchHandlers handlers) {
  WatchHandlers watching = std::move(handlers);
  watching.on_give_back =
      [this, next = std::move(watching.on_give_back)](const GiveBackRequest& request) {
        Answer(request);
        if (next) next(request);
      };
  watching.on_session_lost =
      [this, next = std::move(watching.on_session_lost)](const absl::Status& status) {
        SessionLost();
        if (next) next(status);
      };
  watching.on_end = [this, next = std::move(watching.on_end)](const absl::Status& status) {
    WatchEnded();
    if (next) next(status);
  };
  HB_ASSIGN_OR_RETURN(watch_, client_.Watch(std::move(watching)));
  HB_ASSIGN_OR_RETURN(thread_, StartThread([this] { Run(); }));
  return absl::OkStatus();
}

BlockStore::Block BlockStore::TakeIdle(const std::string& kind, Bytes size) {
  Block block;
  {
    MutexLock lock(mutex_);
    // It may be lost, and the watch may not have said so yet.
    Append(going_, idle_.TakeLost());
    block = idle_.Take(kind, size);
    ++(block == nullptr ? stats_.misses : stats_.hits);
    report_changed_ = true;
  }
  changed_.NotifyAll();
  return block;
}

absl::StatusOr<BlockStore::Block> BlockStore::LeaseBlock(const AllocationRequest& request,
                                                         AllocateOptions options,
                                                         const std::string& kind,
                                                         const CallLimits& limits) {
  options.timeout = limits.left();
  options.cancellation = limits.cancellation();
  auto block = std::make_unique<LeasedMemory>();
  HB_ASSIGN_OR_RETURN(block->lease, client_.Allocate(request, options));
  const ImportFacts& facts = block->lease.facts();
  absl::StatusOr<DeviceBuffer> buffer = importer_.Import(
      *block->lease.block(), ArenaUsage(facts, importer_.context()), LeftOf(limits));
  if (!buffer.ok()) {
    // The caller has no more time than it said.
    block->lease.ReleaseLater();
    return std::move(buffer).status();
  }
  block->buffer = *std::move(buffer);
  block->kind = kind;
  block->size = facts.size;
  block->bytes = facts.allocation_size;
  block->device_index = facts.device_index;
  block->heap_index = HeapOf(*block->lease.block());
  return block;
}

void BlockStore::Leave(Block block) {
  {
    MutexLock lock(mutex_);
    // One that is lost only after this, SessionLost finds.
    if (block->lease.lost()) {
      going_.push_back(std::move(block));
    } else {
      Append(going_, idle_.Put(std::move(block), Clock::now(), max_bytes_));
      report_changed_ = true;
    }
  }
  changed_.NotifyAll();
}

absl::Status BlockStore::Return(std::vector<Block> blocks, const CallOptions& call) {
  std::vector<Lease> leases;
  for (Block& block : blocks) {
    block->buffer = DeviceBuffer();
    // Nobody is there any more to be told of a lost one.
    if (!block->lease.lost()) leases.push_back(std::move(block->lease));
  }
  blocks.clear();
  const absl::Status status = ReleaseAll(std::move(leases), call);
  {
    MutexLock lock(mutex_);
    --giving_back_;
  }
  changed_.NotifyAll();
  return status;
}

absl::Status BlockStore::GiveBack(std::vector<Block> blocks) {
  {
    MutexLock lock(mutex_);
    ++giving_back_;
  }
  return Return(std::move(blocks));
}

absl::Status BlockStore::Trim(Bytes target, const CallLimits& limits) {
  std::vector<Block> blocks;
  {
    MutexLock lock(mutex_);
    blocks = idle_.TakeDownTo(target);
    Append(blocks, std::exchange(going_, {}));
    report_changed_ = true;
    ++giving_back_;
  }
  const absl::Status status = Return(std::move(blocks), LeftOf(limits));
  HB_RETURN_IF_ERROR(status);
  return AwaitReturns(limits);
}

absl::Status BlockStore::AwaitReturns(const CallLimits& limits) {
  const CancelHook hook(limits.cancellation(), [this] {
    // Whoever has looked before it was cancelled is waiting by now.
    { MutexLock lock(mutex_); }
    changed_.NotifyAll();
  });
  MutexLock lock(mutex_);
  while (giving_back_ > 0) {
    if (limits.cancelled()) {
      return absl::CancelledError("cancelled while other threads gave blocks back");
    }
    const absl::Duration left = std::min(limits.left(), absl::Hours(24));
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("other threads gave blocks back for ",
                                                      absl::FormatDuration(limits.timeout())));
    }
    changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(left));
  }
  return absl::OkStatus();
}

void BlockStore::Answer(const GiveBackRequest& request) {
  std::vector<Block> blocks;
  {
    MutexLock lock(mutex_);
    // What is on its way already, but waits for the thread, need not wait any longer.
    Bytes sum;
    const auto wanted = [&](const Block& block) {
      return block->IsOf(request.device_index, request.heap_index);
    };
    const auto others = std::stable_partition(going_.begin(), going_.end(), wanted);
    blocks.insert(blocks.end(), std::make_move_iterator(going_.begin()),
                  std::make_move_iterator(others));
    going_.erase(going_.begin(), others);
    for (const Block& block : blocks) sum += block->bytes;
    if (sum < request.bytes) {
      Append(blocks, idle_.TakeOf(request.device_index, request.heap_index, request.bytes - sum));
    }
    for (const Block& block : blocks) stats_.given_back_on_request += block->bytes;
    report_changed_ = true;
    ++giving_back_;
  }
  // The daemon waits no longer than that, and what follows is told on the same thread.
  // What is left then goes later; nobody is there to hear of errors.
  Return(std::move(blocks), {.timeout = request.time}).IgnoreError();
}

void BlockStore::SessionLost() {
  {
    MutexLock lock(mutex_);
    Append(going_, idle_.TakeLost());
    // The next session has not been told of what is idle in it: what was said before
    // this belonged to the old one.
    report_changed_ = true;
  }
  changed_.NotifyAll();
}

void BlockStore::WatchEnded() {
  {
    MutexLock lock(mutex_);
    max_bytes_ = Bytes(0);
    Append(going_, idle_.TakeDownTo(Bytes(0)));
  }
  changed_.NotifyAll();
}

BlockStore::Work BlockStore::NextWork() {
  MutexLock lock(mutex_);
  while (true) {
    const Clock::time_point now = Clock::now();
    if (max_idle_) {
      std::vector<Block> expired = idle_.TakeFrom(now - *max_idle_);
      report_changed_ = report_changed_ || !expired.empty();
      Append(going_, std::move(expired));
    }
    if (!going_.empty() || report_changed_ || ending_) {
      Work work{.going = std::exchange(going_, {}),
                .report = idle_.Report(),
                .report_changed = std::exchange(report_changed_, false),
                .ends = ending_};
      if (!work.going.empty()) ++giving_back_;
      return work;
    }
    const std::optional<Clock::time_point> oldest = idle_.oldest();
    if (max_idle_ && oldest) {
      changed_.WaitFor(mutex_, *oldest + *max_idle_ - now);
    } else {
      changed_.Wait(mutex_);
    }
  }
}

void BlockStore::Run() {
  while (true) {
    Work work = NextWork();
    // First, so that nothing counts as idle that others can have already.
    if (work.report_changed) watch_->ReportIdle(std::move(work.report));
    if (!work.going.empty()) Return(std::move(work.going)).IgnoreError();
    if (work.ends) return;
  }
}

bool BlockStore::HasSpareBlocks() const {
  MutexLock lock(mutex_);
  return idle_.count() > 0 || !going_.empty() || giving_back_ > 0;
}

LocalCacheStats BlockStore::stats() const {
  MutexLock lock(mutex_);
  LocalCacheStats stats = stats_;
  stats.idle = idle_.bytes();
  stats.idle_blocks = idle_.count();
  return stats;
}

}  // namespace heapbroker
