// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The lines of a plan that describe a device.
#ifndef TESTS_FAULTS_PLAN_DEVICE_SECTION_H_
#define TESTS_FAULTS_PLAN_DEVICE_SECTION_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tests/faults/plan/fault_plan.h"
#include "tests/faults/plan/line_reader.h"

namespace heapbroker::faults {

// Reads the rest of a line that began with `keyword` into `device`. The reader
// stands behind the keyword. Errors as LineReader's.
absl::Status ReadDeviceLine(absl::string_view keyword, LineReader& line, DevicePlan& device);

// The keywords of such lines, for error messages.
std::string DeviceKeywords();

// Whether the device, all of it read, makes sense: types with heaps, budgets of
// heaps that exist. INVALID_ARGUMENT otherwise, without a position.
absl::Status CheckDevice(const DevicePlan& device);

// A rule, as ParseFaultRule, with the line's position in its errors.
absl::StatusOr<FaultRule> ReadFaultRule(LineReader& line);

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_DEVICE_SECTION_H_
