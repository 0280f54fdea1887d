// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What programs ask a sub-allocator for, as lists of requests.
#ifndef TESTS_BENCHMARK_ALLOCATION_TRACE_H_
#define TESTS_BENCHMARK_ALLOCATION_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "heapbroker/units.h"

namespace heapbroker {

struct AllocationStep {
  uint32_t id = 0;         // Below AllocationTrace::ids; used again after a free.
  uint32_t alignment = 1;  // Of what is allocated.
  uint64_t size = 0;       // 0: frees what has the id.

  friend bool operator==(const AllocationStep&, const AllocationStep&) = default;
};

// Begins and ends with nothing allocated.
struct AllocationTrace {
  std::string name;
  uint32_t ids = 0;
  uint32_t usual_alignment = 1;  // That most steps have.
  std::vector<AllocationStep> steps;
  Bytes peak;  // Most that is allocated at once, as it was asked for.
};

// `steps` is about how many steps each has. The same numbers give the same traces.
//
// Log-normal: so many are alive, and one that is chosen by chance is replaced by a new
// one again and again.
AllocationTrace LogNormalTrace(uint32_t live, uint32_t steps, uint32_t seed);
// The same with alignments from 1 byte to 4 KiB.
AllocationTrace MixedAlignmentTrace(uint32_t live, uint32_t steps, uint32_t seed);
// A language model that serves several conversations at once, a token of each in turn:
// the temporary tensors of every layer, and a cache that grows with the conversation
// and is dropped at its end.
AllocationTrace DecodeTrace(uint32_t steps, uint32_t seed);
// Convolution networks as ncnn runs them: an output for each layer, freed when the
// next one has read it, images of several resolutions.
AllocationTrace NcnnTrace(uint32_t steps, uint32_t seed);
// Graphs as ggml plans them: few long-lived buffers for the weights, and the tensors
// of a graph in the order of its nodes, for prompts and for single tokens.
AllocationTrace GgmlTrace(uint32_t steps, uint32_t seed);

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_ALLOCATION_TRACE_H_
