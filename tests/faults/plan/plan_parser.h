// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Reads what the fault layer is told to do.
#ifndef TESTS_FAULTS_PLAN_PLAN_PARSER_H_
#define TESTS_FAULTS_PLAN_PLAN_PARSER_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/faults/plan/fault_plan.h"

namespace heapbroker::faults {

// The text of a plan; tests/faults/README.md has the language. A plan without a
// device section gets one, "default", that shows each device as it is.
//
// INVALID_ARGUMENT for anything that the language does not have, and for a device
// that would contradict itself; begins with "line L, column C: " and says what is
// allowed.
absl::StatusOr<FaultPlan> ParseFaultPlan(absl::string_view text);

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_PLAN_PARSER_H_
