// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/fault_rules.h"

#include <vector>

#include "gtest/gtest.h"

namespace heapbroker::faults {
namespace {

TEST(FaultRulesTest, BreaksExactlyTheCallsOfItsRange) {
  FaultRules rules({{Function::kMapMemory, {3, 4}, Fail{VK_ERROR_MEMORY_MAP_FAILED}}});
  std::vector<bool> broken;
  for (int i = 0; i < 6; ++i) broken.push_back(rules.OnCall(Function::kMapMemory).fail.has_value());
  EXPECT_EQ(broken, (std::vector<bool>{false, false, true, true, false, false}));
}

TEST(FaultRulesTest, CountsEachFunctionByItself) {
  FaultRules rules({{Function::kMapMemory, {2, 2}, Hang{}}});
  EXPECT_FALSE(rules.OnCall(Function::kMapMemory).hang);
  EXPECT_FALSE(rules.OnCall(Function::kFreeMemory).hang);
  EXPECT_FALSE(rules.OnCall(Function::kFreeMemory).hang);
  EXPECT_TRUE(rules.OnCall(Function::kMapMemory).hang);
}

TEST(FaultRulesTest, AddsDelaysUpAndTakesTheFirstFailure) {
  FaultRules rules({{Function::kImport, {}, Delay{absl::Milliseconds(2)}},
                    {Function::kImport, {}, FailImport{VK_ERROR_UNKNOWN, true}},
                    {Function::kImport, {}, FailImport{VK_ERROR_DEVICE_LOST, false}},
                    {Function::kImport, {}, Delay{absl::Milliseconds(3)}}});
  const Decision decision = rules.OnCall(Function::kImport);
  EXPECT_EQ(decision.delay, absl::Milliseconds(5));
  EXPECT_EQ(decision.fail, VK_ERROR_UNKNOWN);
  EXPECT_TRUE(decision.close_descriptor);
  EXPECT_FALSE(decision.hang);
}

TEST(FaultRulesTest, WithoutARuleNothingHappens) {
  const Decision decision = FaultRules({}).OnCall(Function::kAllocateMemory);
  EXPECT_FALSE(decision.fail.has_value() || decision.hang || decision.close_descriptor);
  EXPECT_EQ(decision.delay, absl::ZeroDuration());
}

}  // namespace
}  // namespace heapbroker::faults
