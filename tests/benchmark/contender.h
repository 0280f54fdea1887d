// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Who is measured.
#ifndef TESTS_BENCHMARK_CONTENDER_H_
#define TESTS_BENCHMARK_CONTENDER_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "tests/benchmark/allocation_trace.h"
#include "tests/benchmark/trace_replay.h"

namespace heapbroker {

// An allocator that is made anew for each trace.
struct Contender {
  std::string name;
  // With so many threads.
  std::function<absl::StatusOr<ReplayedTrace>(const AllocationTrace& trace, int threads)> replay;
};

// `make(trace)` makes an Allocator by itself, or one that several threads can share.
template <typename Make, typename MakeShared>
Contender MakeContender(std::string name, Make make, MakeShared make_shared) {
  return {std::move(name),
          [=](const AllocationTrace& trace, int threads) -> absl::StatusOr<ReplayedTrace> {
            if (threads == 1) {
              const auto alone = make(trace);
              return Replay(*alone, trace);
            }
            const auto shared = make_shared(trace);
            return ReplayTogether(*shared, trace, threads);
          }};
}

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_CONTENDER_H_
