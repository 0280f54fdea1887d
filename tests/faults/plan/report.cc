// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/report.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace heapbroker::faults {
namespace {

struct Counter {
  absl::string_view key;
  uint64_t DeviceCounters::*value;
};
constexpr Counter kCounters[] = {
    {"faults", &DeviceCounters::faults},
    {"live_allocations", &DeviceCounters::live_allocations},
    {"peak_allocations", &DeviceCounters::peak_allocations},
    {"live_bytes", &DeviceCounters::live_bytes},
    {"peak_bytes", &DeviceCounters::peak_bytes},
    {"live_buffers", &DeviceCounters::live_buffers},
    {"live_fences", &DeviceCounters::live_fences},
    {"live_command_pools", &DeviceCounters::live_command_pools},
    {"live_devices", &DeviceCounters::live_devices},
    {"exported_descriptors", &DeviceCounters::exported_descriptors},
};
constexpr absl::string_view kHeapPrefix = "live_bytes_of_heap_";

void AppendDevice(const std::string& name, const DeviceCounters& device, std::string& out) {
  for (const Counter& counter : kCounters) {
    absl::StrAppend(&out, "device ", name, " ", counter.key, " ", device.*counter.value, "\n");
  }
  for (const auto& [heap, bytes] : device.live_heap_bytes) {
    absl::StrAppend(&out, "device ", name, " ", kHeapPrefix, heap, " ", bytes, "\n");
  }
  for (size_t i = 0; i < kFunctionCount; ++i) {
    if (device.calls[i] == 0) continue;
    absl::StrAppend(&out, "device ", name, " ", FunctionName(static_cast<Function>(i)), " ",
                    device.calls[i], "\n");
  }
}

absl::Status BadLine(absl::string_view line) {
  return absl::InvalidArgumentError(absl::StrCat("\"", line, "\" is no line of a report"));
}

absl::Status SetCounter(absl::string_view key, uint64_t value, DeviceCounters& device) {
  for (const Counter& counter : kCounters) {
    if (counter.key != key) continue;
    device.*counter.value = value;
    return absl::OkStatus();
  }
  uint32_t heap = 0;
  absl::string_view rest = key;
  if (absl::ConsumePrefix(&rest, kHeapPrefix) && absl::SimpleAtoi(rest, &heap)) {
    device.live_heap_bytes[heap] = value;
    return absl::OkStatus();
  }
  const std::optional<Function> function = FindFunction(key);
  if (!function) return BadLine(key);
  device.calls[static_cast<size_t>(*function)] = value;
  return absl::OkStatus();
}

absl::Status ReadLine(absl::string_view line, Report& report) {
  if (absl::ConsumePrefix(&line, "violation ")) {
    report.violations.emplace_back(line);
    return absl::OkStatus();
  }
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  uint64_t value = 0;
  if (words.size() < 2 || !absl::SimpleAtoi(words.back(), &value)) return BadLine(line);
  if (words.size() == 4 && words[0] == "device") {
    return SetCounter(words[2], value, report.devices[words[1]]);
  }
  if (words[0] == "pid") {
    report.pid = value;
  } else if (words[0] == "instances") {
    report.instances = value;
  } else if (words[0] == "violations") {
    report.violation_count = value;
  } else {
    return BadLine(line);
  }
  return absl::OkStatus();
}

}  // namespace

std::string FormatReport(const Report& report, uint64_t sequence) {
  std::string out = absl::StrCat("sequence ", sequence, "\npid ", report.pid, "\ninstances ",
                                 report.instances, "\nviolations ", report.violation_count, "\n");
  for (const std::string& violation : report.violations) {
    absl::StrAppend(&out, "violation ", absl::StrReplaceAll(violation, {{"\n", " "}}), "\n");
  }
  for (const auto& [name, device] : report.devices) AppendDevice(name, device, out);
  absl::StrAppend(&out, "end ", sequence, "\n");
  return out;
}

absl::StatusOr<Report> ParseReport(absl::string_view text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.empty() || !absl::ConsumePrefix(&lines.front(), "sequence ")) {
    return absl::UnavailableError("the report does not have its beginning yet");
  }
  Report report;
  for (size_t i = 1; i < lines.size(); ++i) {
    absl::string_view end = lines[i];
    if (absl::ConsumePrefix(&end, "end ")) {
      if (end == lines.front()) return report;
      return absl::UnavailableError("the report is being written");
    }
    HB_RETURN_IF_ERROR(ReadLine(lines[i], report));
  }
  return absl::UnavailableError("the report does not have its end yet");
}

}  // namespace heapbroker::faults
