// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/fault_rules.h"

namespace heapbroker::faults {
namespace {

Decision DecisionOf(const Fail& fail) {
  Decision decision;
  decision.fail = fail.result;
  return decision;
}

Decision DecisionOf(const FailImport& fail) {
  Decision decision;
  decision.fail = fail.result;
  decision.close_descriptor = fail.close;
  return decision;
}

Decision DecisionOf(const Delay& delay) {
  Decision decision;
  decision.delay = delay.duration;
  return decision;
}

Decision DecisionOf(const Hang&) {
  Decision decision;
  decision.hang = true;
  return decision;
}

}  // namespace

Decision FaultRules::OnCall(Function function) {
  const uint64_t ordinal = ++calls_[static_cast<size_t>(function)];
  Decision decision;
  for (const FaultRule& rule : rules_) {
    if (rule.function != function || !rule.when.Contains(ordinal)) continue;
    decision = Combine(
        decision, std::visit([](const auto& action) { return DecisionOf(action); }, rule.action));
  }
  return decision;
}

Decision Combine(const Decision& first, const Decision& second) {
  Decision both = first;
  both.delay += second.delay;
  both.hang = first.hang || second.hang;
  if (!both.fail) {
    both.fail = second.fail;
    both.close_descriptor = second.close_descriptor;
  }
  return both;
}

}  // namespace heapbroker::faults
