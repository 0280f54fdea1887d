// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Random requests that wait: who is served, in which order, who is refused and when,
// who is asked for memory, all as the rules say.
#include "tests/model/queue_trace.h"

#include <cstdlib>
#include <iostream>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr uint32_t kOperations = 4000;

// What is no number above zero makes no trace, which gtest reports as a failure.
uint32_t Number(const char* variable, uint32_t usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

uint32_t FirstSeed() { return Number("HEAPBROKER_TRACE_FIRST_SEED", 1); }
uint32_t Seeds() { return Number("HEAPBROKER_TRACE_SEEDS", 50); }

class QueueTraceTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(QueueTraceTest, EveryTurnIsAsTheRulesSay) {
  QueueTrace trace(GetParam());
  uint32_t done = 0;
  for (; done < kOperations && !HasFailure(); ++done) trace.Step();
  const QueueTrace::Seen& seen = trace.seen();
  std::cout << "seed " << GetParam() << ", " << done << " operations: " << trace.setting() << "; "
            << seen.grants << " grants, " << seen.waited << " waited, " << seen.refused
            << " refused, " << seen.repeated << " repeated, " << seen.asks << " asked\n";
  EXPECT_GT(seen.grants, done / 50);
  EXPECT_GT(seen.waited, done / 50);
  EXPECT_GT(seen.refused, done / 50);
}

INSTANTIATE_TEST_SUITE_P(Seeds, QueueTraceTest,
                         ::testing::Range(FirstSeed(), FirstSeed() + Seeds()));

}  // namespace
}  // namespace heapbroker
