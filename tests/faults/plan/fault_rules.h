// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which call gets which fault.
#ifndef TESTS_FAULTS_PLAN_FAULT_RULES_H_
#define TESTS_FAULTS_PLAN_FAULT_RULES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "tests/faults/plan/fault_plan.h"

namespace heapbroker::faults {

// What to do with one call.
struct Decision {
  absl::Duration delay;  // First, all delays together.
  bool hang = false;     // Then for ever.
  // Then this, instead of asking the driver.
  std::optional<VkResult> fail;
  bool close_descriptor = false;  // Of an import that fails.
};

// Counts calls and applies the rules to them. Of several failures for one call the
// first rule's counts. Not thread-safe.
class FaultRules {
 public:
  explicit FaultRules(std::vector<FaultRule> rules) : rules_(std::move(rules)) {}

  // Counts a call of `function`.
  Decision OnCall(Function function);

 private:
  std::vector<FaultRule> rules_;
  std::array<uint64_t, kFunctionCount> calls_{};
};

// Both: delays add up, and the first one's failure goes before the second's.
Decision Combine(const Decision& first, const Decision& second);

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_FAULT_RULES_H_
