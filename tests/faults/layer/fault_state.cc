// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/layer/fault_state.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "tests/faults/plan/plan_parser.h"

namespace heapbroker::faults {
namespace {

constexpr char kVariable[] = "HEAPBROKER_FAULTS";

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot read ", path));
  return text.str();
}

absl::StatusOr<FaultPlan> ReadPlan(const std::string& path) {
  HB_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<FaultPlan> plan = ParseFaultPlan(text);
  if (plan.ok()) return plan;
  return absl::Status(plan.status().code(), absl::StrCat(path, ": ", plan.status().message()));
}

[[noreturn]] void HangForEver() {
  while (true) pause();
}

}  // namespace

absl::StatusOr<FaultState*> FaultState::OfEnvironment() {
  const char* const path = std::getenv(kVariable);
  if (path == nullptr || *path == '\0') {
    return absl::FailedPreconditionError(
        absl::StrCat(kVariable, " is not set; it names the file with the plan"));
  }
  static Mutex mutex;
  // Never destroyed: instances may outlive whatever else the process destroys.
  static auto* const states = new std::map<std::string, std::unique_ptr<FaultState>>;
  MutexLock lock(mutex);
  const auto found = states->find(path);
  if (found != states->end()) return found->second.get();
  HB_ASSIGN_OR_RETURN(std::unique_ptr<FaultState> made, Create(path));
  return states->emplace(path, std::move(made)).first->second.get();
}

absl::StatusOr<std::unique_ptr<FaultState>> FaultState::Create(const std::string& path) {
  HB_ASSIGN_OR_RETURN(const Version version, VersionOf(path));
  HB_ASSIGN_OR_RETURN(FaultPlan plan, ReadPlan(path));
  std::unique_ptr<SharedReport> shared;
  if (!plan.report.empty()) {
    HB_ASSIGN_OR_RETURN(shared, SharedReport::Create(plan.report));
  }
  // Not make_unique: the constructor is private.
  return std::unique_ptr<FaultState>(
      new FaultState(path, version, std::move(plan), std::move(shared)));
}

absl::StatusOr<FaultState::Version> FaultState::VersionOf(const std::string& path) {
  struct stat file {};
  if (stat(path.c_str(), &file) != 0) return absl::ErrnoToStatus(errno, path);
  return Version{file.st_ino, file.st_mtim, file.st_size};
}

FaultState::FaultState(std::string path, Version version, FaultPlan plan,
                       std::unique_ptr<SharedReport> shared)
    : path_(std::move(path)),
      plan_(std::move(plan)),
      version_(version),
      global_rules_({}),
      shared_(std::move(shared)) {
  MutexLock lock(mutex_);
  TakeRules(plan_);
  report_.pid = static_cast<uint64_t>(getpid());
  for (const DevicePlan& device : plan_.devices) report_.devices[device.name];
  WriteReport();
}

void FaultState::TakeRules(const FaultPlan& plan) {
  global_rules_ = FaultRules(plan.faults);
  device_rules_.clear();
  budgets_.clear();
  for (const DevicePlan& device : plan.devices) {
    device_rules_.emplace(device.name, FaultRules(device.faults));
    budgets_[device.name] = device.budgets;
  }
}

std::optional<Broken> FaultState::OnCall(Function function, const DevicePlan* device) {
  Decision decision;
  {
    MutexLock lock(mutex_);
    RefreshOrComplain();
    decision = Decide(function, device);
    WriteReport();
  }
  if (decision.delay > absl::ZeroDuration()) absl::SleepFor(decision.delay);
  if (decision.hang) HangForEver();
  if (!decision.fail) return std::nullopt;
  return Broken{*decision.fail, decision.close_descriptor};
}

Decision FaultState::Decide(Function function, const DevicePlan* device) {
  Decision decision = global_rules_.OnCall(function);
  if (device == nullptr) {
    ++report_.instances;
    return decision;
  }
  // A section that the changed file does not have any more has no rules.
  const auto rules = device_rules_.find(device->name);
  if (rules != device_rules_.end()) decision = Combine(decision, rules->second.OnCall(function));
  DeviceCounters& counters = report_.devices[device->name];
  ++counters.calls[static_cast<size_t>(function)];
  if (decision.fail || decision.hang || decision.delay > absl::ZeroDuration()) ++counters.faults;
  return decision;
}

std::map<uint32_t, BudgetPlan> FaultState::Budgets(const DevicePlan& device) {
  MutexLock lock(mutex_);
  RefreshOrComplain();
  return budgets_[device.name];
}

uint64_t FaultState::LiveHeapBytes(const DevicePlan& device, uint32_t heap) {
  MutexLock lock(mutex_);
  return report_.devices[device.name].live_heap_bytes[heap];
}

void FaultState::Count(const DevicePlan& device, absl::FunctionRef<void(DeviceCounters&)> change) {
  MutexLock lock(mutex_);
  change(report_.devices[device.name]);
  WriteReport();
}

void FaultState::ReportViolation(absl::string_view text) {
  MutexLock lock(mutex_);
  Complain(text);
}

absl::Status FaultState::Refresh() {
  HB_ASSIGN_OR_RETURN(const Version version, VersionOf(path_));
  if (version == version_) return absl::OkStatus();
  // Also a version that cannot be read is complained about once.
  version_ = version;
  HB_ASSIGN_OR_RETURN(const FaultPlan plan, ReadPlan(path_));
  TakeRules(plan);
  return absl::OkStatus();
}

void FaultState::RefreshOrComplain() {
  const absl::Status refreshed = Refresh();
  // A plan that was removed stays in force: tests clean up while daemons end.
  if (refreshed.ok() || absl::IsNotFound(refreshed)) return;
  Complain(absl::StrCat("the plan has changed and does not count: ", refreshed.message()));
}

void FaultState::Complain(absl::string_view text) {
  ++report_.violation_count;
  if (report_.violations.size() < Report::kMaxViolations) report_.violations.emplace_back(text);
  WriteReport();
  const std::string line = absl::StrCat("VK_LAYER_HEAPBROKER_faults: ", text, "\n");
  std::fputs(line.c_str(), stderr);
  if (plan_.abort_on_violation) std::abort();
}

void FaultState::WriteReport() {
  if (shared_ != nullptr) shared_->Write(FormatReport(report_, ++sequence_));
}

}  // namespace heapbroker::faults
