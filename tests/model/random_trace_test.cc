// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A million random operations against the reference model.
#include "tests/model/random_trace.h"

#include <cstdlib>
#include <iostream>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

// What is no number above zero makes no trace, which gtest reports as a failure.
uint32_t Number(const char* variable, uint32_t usual) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? usual : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

uint32_t FirstSeed() { return Number("HEAPBROKER_TRACE_FIRST_SEED", 1); }
uint32_t Seeds() { return Number("HEAPBROKER_TRACE_SEEDS", 50); }
uint32_t Operations() { return Number("HEAPBROKER_TRACE_OPERATIONS", 20000); }

class RandomTraceTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomTraceTest, AgreesWithTheReferenceModel) {
  RandomTrace trace(GetParam());
  uint32_t done = 0;
  while (done < Operations() && !HasFailure()) {
    trace.Step();
    ++done;
  }
  const ReferenceModel::Seen& seen = trace.model().seen();
  std::cout << "seed " << GetParam() << ", " << done << " operations: " << trace.setting() << "; "
            << seen.grants << " grants, " << seen.reuses << " blocks reused, " << seen.attached
            << " segments opened, " << seen.refusals << " refusals (" << seen.exact_refusals
            << " to the byte, " << seen.never << " never); of what was idle "
            << trace.model().idle().fits_checked() << " choices and "
            << trace.model().idle().evictions_checked() << " evictions checked\n";
  if (!HasFailure()) trace.End();
  EXPECT_GT(seen.grants, done / 100);
  EXPECT_GT(seen.refusals, done / 500);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTraceTest,
                         ::testing::Range(FirstSeed(), FirstSeed() + Seeds()));

}  // namespace
}  // namespace heapbroker
