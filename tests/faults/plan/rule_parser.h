// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Reads one fault rule.
#ifndef TESTS_FAULTS_PLAN_RULE_PARSER_H_
#define TESTS_FAULTS_PLAN_RULE_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/faults/plan/fault_plan.h"

namespace heapbroker::faults {

// FUNCTION:WHEN:ACTION.
//   FUNCTION  a name as FunctionName has it
//   WHEN      3 | 3-5 | 3- | *
//   ACTION    error(CODE) | delay(20s) | hang, and for `import`
//             fail-and-close | fail-and-keep, both with (CODE) if it matters
//
// INVALID_ARGUMENT for anything else, and for an error from a function that
// returns none; begins with "position P: ", counted from 0.
absl::StatusOr<FaultRule> ParseFaultRule(absl::string_view text);

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_RULE_PARSER_H_
