// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// How many random operations a test makes, and from which seeds: chosen in the
// environment, so that a failure can be repeated and a search be longer.
#ifndef TESTS_SUPPORT_TRACE_SEEDS_H_
#define TESTS_SUPPORT_TRACE_SEEDS_H_

#include <cstdint>
#include <cstdlib>

#include "gtest/gtest.h"

namespace heapbroker {

// What is no number above zero makes no trace, which gtest reports as a failure.
inline uint32_t NumberInEnvironment(const char* variable, uint32_t usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

// A million operations, unless the environment says otherwise.
inline uint32_t TraceOperations() {
  return NumberInEnvironment("HEAPBROKER_TRACE_OPERATIONS", 20000);
}
inline auto TraceSeeds() {
  const uint32_t first = NumberInEnvironment("HEAPBROKER_TRACE_FIRST_SEED", 1);
  return ::testing::Range(first, first + NumberInEnvironment("HEAPBROKER_TRACE_SEEDS", 50));
}

}  // namespace heapbroker
#endif  // TESTS_SUPPORT_TRACE_SEEDS_H_
