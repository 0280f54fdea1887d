// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/fault_file.h"

#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr char kPlan[] = "plan";
constexpr char kReport[] = "report";

void Check(bool done, const char* what) {
  if (done) return;
  std::perror(what);
  std::abort();
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::optional<std::string> Variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

void SetVariable(const std::string& name, const std::optional<std::string>& value) {
  if (value) {
    setenv(name.c_str(), value->c_str(), 1);
  } else {
    unsetenv(name.c_str());
  }
}

// `more` behind what the variable holds now.
std::string Appended(const std::string& name, absl::string_view more) {
  const std::string before = Variable(name).value_or("");
  return before.empty() ? std::string(more) : absl::StrCat(before, ":", more);
}
std::string Prepended(const std::string& name, absl::string_view more) {
  const std::string before = Variable(name).value_or("");
  return before.empty() ? std::string(more) : absl::StrCat(more, ":", before);
}

}  // namespace

FaultFile::FaultFile(absl::string_view plan) {
  Check(chmod(dir_.path().c_str(), 0755) == 0, "chmod");
  // Made here, so that a process of another user may write it.
  std::ofstream report(dir_.File(kReport));
  Check(report.good() && chmod(dir_.File(kReport).c_str(), 0666) == 0, "making the report");
  Write(plan);
}

void FaultFile::Write(absl::string_view plan) {
  const std::string fresh = dir_.File("fresh");
  std::ofstream file(fresh);
  file << "report " << dir_.File(kReport) << "\n" << std::string(plan);
  file.close();
  Check(file.good() && std::rename(fresh.c_str(), dir_.File(kPlan).c_str()) == 0,
        "writing the plan");
}

std::map<std::string, std::optional<std::string>> FaultFile::Environment() const {
  return {{"HEAPBROKER_FAULTS", dir_.File(kPlan)},
          {"VK_ADD_LAYER_PATH", Appended("VK_ADD_LAYER_PATH", HEAPBROKER_FAULT_LAYER_DIR)},
          // The loader builds from the driver upwards, in the order of the list.
          {"VK_INSTANCE_LAYERS", Prepended("VK_INSTANCE_LAYERS", "VK_LAYER_HEAPBROKER_faults")}};
}

absl::StatusOr<faults::Report> FaultFile::Report() const {
  const std::string path = dir_.File(kReport);
  constexpr int kAttempts = 1000;
  absl::StatusOr<faults::Report> report = absl::UnavailableError("not read");
  std::string last;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string text = ReadFile(path);
    if (text.empty()) return absl::UnavailableError("no process has written a report");
    // Twice the same: a text that was read while it was written is not.
    if (text == last) {
      report = faults::ParseReport(text);
      if (!absl::IsUnavailable(report.status())) return report;
    }
    last = text;
  }
  return report;
}

faults::DeviceCounters FaultFile::Device(const std::string& name) const {
  absl::StatusOr<faults::Report> report = Report();
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? report->devices[name] : faults::DeviceCounters{};
}

std::string FaultFile::Violations() const {
  const absl::StatusOr<faults::Report> report = Report();
  if (!report.ok()) return "no report";
  return absl::StrJoin(report->violations, "\n");
}

ScopedFaults::ScopedFaults(const FaultFile& file) {
  const auto environment = file.Environment();
  for (const auto& [name, value] : environment) {
    before_[name] = Variable(name);
    SetVariable(name, value);
  }
}

ScopedFaults::~ScopedFaults() {
  for (const auto& [name, value] : before_) SetVariable(name, value);
}

}  // namespace heapbroker
