// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/plan_parser.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "tests/faults/plan/device_section.h"
#include "tests/faults/plan/line_reader.h"

namespace heapbroker::faults {
namespace {

class PlanParser {
 public:
  absl::Status ReadLine(absl::string_view text, size_t number) {
    HB_ASSIGN_OR_RETURN(LineReader line, LineReader::Create(text, number));
    if (line.AtEnd()) return absl::OkStatus();
    HB_ASSIGN_OR_RETURN(const std::string keyword, line.Word("a keyword"));
    if (keyword == "device") {
      HB_RETURN_IF_ERROR(EndDevice());
      HB_RETURN_IF_ERROR(BeginDevice(line, number));
    } else if (plan_.devices.empty()) {
      HB_RETURN_IF_ERROR(ReadGlobalLine(keyword, line));
    } else {
      HB_RETURN_IF_ERROR(ReadDeviceLine(keyword, line, plan_.devices.back()));
    }
    return line.End();
  }

  absl::StatusOr<FaultPlan> Finish() {
    HB_RETURN_IF_ERROR(EndDevice());
    if (plan_.devices.empty()) {
      DevicePlan device;
      device.name = "default";
      device.every_device = true;
      plan_.devices.push_back(std::move(device));
    }
    return std::move(plan_);
  }

 private:
  absl::Status BeginDevice(LineReader& line, size_t number) {
    HB_ASSIGN_OR_RETURN(const std::string name, line.Word("a name for the device"));
    const bool taken = std::any_of(plan_.devices.begin(), plan_.devices.end(),
                                   [&](const DevicePlan& device) { return device.name == name; });
    if (taken) return line.Error(absl::StrCat("there is a device \"", name, "\" already"));
    // Reports have it as one word.
    if (name.empty() || name.find(' ') != std::string::npos) {
      return line.Error("a device's name here is one word; deviceName is what callers see");
    }
    plan_.devices.emplace_back().name = name;
    device_line_ = number;
    return absl::OkStatus();
  }

  absl::Status EndDevice() const {
    if (plan_.devices.empty()) return absl::OkStatus();
    const absl::Status status = CheckDevice(plan_.devices.back());
    if (status.ok()) return status;
    return absl::InvalidArgumentError(
        absl::StrCat("line ", device_line_, ", column 1: ", status.message()));
  }

  absl::Status ReadGlobalLine(const std::string& keyword, LineReader& line) {
    if (keyword == "report") {
      HB_ASSIGN_OR_RETURN(plan_.report, line.Word("a path"));
      return absl::OkStatus();
    }
    if (keyword == "on_violation") return ReadOnViolation(line);
    if (keyword == "fault") {
      HB_ASSIGN_OR_RETURN(const FaultRule rule, ReadFaultRule(line));
      plan_.faults.push_back(rule);
      return absl::OkStatus();
    }
    return line.Error(absl::StrCat("\"", keyword,
                                   "\" is not allowed here; in front of the first device, allowed "
                                   "are report, on_violation, fault and device"));
  }

  absl::Status ReadOnViolation(LineReader& line) {
    HB_ASSIGN_OR_RETURN(const std::string word, line.Word("abort or record"));
    plan_.abort_on_violation = word == "abort";
    if (plan_.abort_on_violation || word == "record") return absl::OkStatus();
    return line.Error(absl::StrCat("\"", word, "\" is not possible; allowed are abort and record"));
  }

  FaultPlan plan_;
  size_t device_line_ = 0;  // Where the last device begins.
};

}  // namespace

absl::StatusOr<FaultPlan> ParseFaultPlan(absl::string_view text) {
  PlanParser parser;
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    HB_RETURN_IF_ERROR(parser.ReadLine(lines[i], i + 1));
  }
  return parser.Finish();
}

}  // namespace heapbroker::faults
