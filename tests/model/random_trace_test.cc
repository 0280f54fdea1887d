// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A million random operations against the reference model.
#include "tests/model/random_trace.h"

#include <iostream>

#include "gtest/gtest.h"
#include "tests/support/trace_seeds.h"

namespace heapbroker {
namespace {

class RandomTraceTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(RandomTraceTest, AgreesWithTheReferenceModel) {
  RandomTrace trace(GetParam());
  uint32_t done = 0;
  while (done < TraceOperations() && !HasFailure()) {
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

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTraceTest, TraceSeeds());

}  // namespace
}  // namespace heapbroker
