// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What real programs allocate, replayed through a core with either matching policy.
#ifndef TESTS_BENCHMARK_PROGRAM_TRACES_H_
#define TESTS_BENCHMARK_PROGRAM_TRACES_H_

#include <string>
#include <vector>

#include "daemon/core/block_size.h"
#include "heapbroker/units.h"

namespace heapbroker {

// One model's blocks; a run takes all of them and gives them back.
struct ProgramTrace {
  std::string name;
  std::vector<Bytes> sizes;
};

// Measured on lavapipe: how many blocks, how much together, and the largest; the rest
// is made up to these sums, of the blocks of 16 and 8 MiB that ncnn takes.
std::vector<ProgramTrace> ProgramTraces();

struct MatchingOutcome {
  double hit_rate = 0;  // Of all requests after the first run.
  Bytes lost;           // Rounding of a run's blocks, all held, on average.
  Bytes idle;           // What is kept after the last run.
};

// The programs of `traces` run one after the other, `runs` times in random order. Each
// size differs from run to run by up to `varies` thousandths: 0 is what was measured,
// and other inputs and batch sizes are what it stands for otherwise.
MatchingOutcome Replay(const std::vector<ProgramTrace>& traces, Matching matching, int runs,
                       uint32_t varies);

// For people: both policies beside each other.
void PrintMatching();

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_PROGRAM_TRACES_H_
