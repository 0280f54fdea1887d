// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The digits program, run against a daemon.
#ifndef TESTS_INTEGRATION_DIGITS_DIGITS_RUNS_H_
#define TESTS_INTEGRATION_DIGITS_DIGITS_RUNS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/support/process.h"

namespace digits {

inline constexpr absl::Duration kRunLimit = absl::Seconds(60);

// `flags` after --runtime-dir.
heapbroker::ProcessOptions DigitsCommand(const std::string& runtime_dir,
                                         const std::vector<std::string>& flags);

// To the end.
absl::StatusOr<heapbroker::CommandResult> RunDigits(const std::string& runtime_dir,
                                                    const std::vector<std::string>& flags = {});

// Starts `count` of them at the same time and returns once each has printed its
// result and holds its memory; CloseInput ends one. FAILED_PRECONDITION, with
// all that it printed, if one ends before that.
absl::StatusOr<std::vector<heapbroker::Process>> StartHolding(heapbroker::ProcessOptions command,
                                                              int count);

}  // namespace digits
#endif  // TESTS_INTEGRATION_DIGITS_DIGITS_RUNS_H_
