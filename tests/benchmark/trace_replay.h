// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Allocators' ways through a trace, call by call.
#ifndef TESTS_BENCHMARK_TRACE_REPLAY_H_
#define TESTS_BENCHMARK_TRACE_REPLAY_H_

#include <algorithm>
#include <cstdint>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "heapbroker/units.h"
#include "tests/benchmark/allocation_trace.h"
#include "tests/benchmark/tick_clock.h"

namespace heapbroker {

// Times of single calls, in Ticks(), and what the trace needed at most.
struct ReplayedTrace {
  std::vector<uint32_t> allocations;
  std::vector<uint32_t> frees;
  Bytes held;  // Memory taken for it at once, at most.
};

// What Allocate of an allocator under test returns.
template <typename Handle>
struct Placed {
  Handle handle{};
  // Where it ends in a run of memory that begins at 0; 0 where there is no such run
  // and the allocator itself knows what it holds.
  uint64_t end = 0;
};

// Puts one step after the other and times each. `Allocator` has a Handle,
// Allocate(size, alignment), which is empty where there is no room, Free(handle), and
// held(), which counts where ends say nothing.
template <typename Allocator>
absl::StatusOr<ReplayedTrace> Replay(Allocator& allocator, const AllocationTrace& trace) {
  ReplayedTrace replayed;
  replayed.allocations.reserve(trace.steps.size());
  replayed.frees.reserve(trace.steps.size());
  std::vector<typename Allocator::Handle> handles(trace.ids);
  uint64_t end = 0;
  for (const AllocationStep& step : trace.steps) {
    if (step.size == 0) {
      // Read outside of the time: a program has it at hand.
      const typename Allocator::Handle handle = handles[step.id];
      const uint64_t begin = Ticks();
      allocator.Free(handle);
      replayed.frees.push_back(static_cast<uint32_t>(Ticks() - begin));
      continue;
    }
    const uint64_t begin = Ticks();
    const std::optional<Placed<typename Allocator::Handle>> placed =
        allocator.Allocate(step.size, step.alignment);
    const uint64_t ticks = Ticks() - begin;
    if (!placed) {
      return absl::ResourceExhaustedError(absl::StrCat("no room for ", step.size, " bytes"));
    }
    replayed.allocations.push_back(static_cast<uint32_t>(ticks));
    handles[step.id] = placed->handle;
    end = std::max(end, placed->end);
  }
  replayed.held = end == 0 ? allocator.held() : Bytes(end);
  return replayed;
}

// The same by several threads at once, each with the whole trace, on one allocator,
// which must be thread-safe.
template <typename Allocator>
absl::StatusOr<ReplayedTrace> ReplayTogether(Allocator& allocator, const AllocationTrace& trace,
                                             int threads) {
  std::vector<absl::StatusOr<ReplayedTrace>> each(threads);
  std::latch begin(threads);
  std::vector<std::thread> running;
  for (absl::StatusOr<ReplayedTrace>& mine : each) {
    running.emplace_back([&] {
      begin.arrive_and_wait();
      mine = Replay(allocator, trace);
    });
  }
  for (std::thread& thread : running) thread.join();
  ReplayedTrace all;
  for (const absl::StatusOr<ReplayedTrace>& one : each) {
    if (!one.ok()) return one.status();
    all.allocations.insert(all.allocations.end(), one->allocations.begin(), one->allocations.end());
    all.frees.insert(all.frees.end(), one->frees.begin(), one->frees.end());
    all.held = std::max(all.held, one->held);
  }
  return all;
}

// Makes an allocator that is not thread-safe so.
template <typename Allocator>
class Locked {
 public:
  using Handle = typename Allocator::Handle;

  template <typename... Arguments>
  explicit Locked(Arguments&&... arguments) : allocator_(arguments...) {}

  std::optional<Placed<Handle>> Allocate(uint64_t size, uint64_t alignment) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return allocator_.Allocate(size, alignment);
  }
  void Free(const Handle& handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    allocator_.Free(handle);
  }
  Bytes held() const { return allocator_.held(); }

 private:
  std::mutex mutex_;
  Allocator allocator_;
};

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_TRACE_REPLAY_H_
