// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What one process does by one plan.
#ifndef TESTS_FAULTS_LAYER_FAULT_STATE_H_
#define TESTS_FAULTS_LAYER_FAULT_STATE_H_

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/mutex.h"
#include "tests/faults/layer/shared_report.h"
#include "tests/faults/plan/fault_plan.h"
#include "tests/faults/plan/fault_rules.h"
#include "tests/faults/plan/report.h"

namespace heapbroker::faults {

// Instead of the driver's answer.
struct Broken {
  VkResult result = VK_ERROR_UNKNOWN;
  bool close_descriptor = false;
};

// The rules, counters and report of a plan, over all instances and devices of the
// process, so that a rule for the third call means the process's third. The file
// may change while the process runs: its budgets and rules take effect with the
// next call, and calls are counted anew for them; everything else stays as it was
// first read. Thread-safe; no lock is held while a rule delays a call.
class FaultState {
 public:
  // Of the plan that $HEAPBROKER_FAULTS names; the same object each time. It lives
  // as long as the process.
  //   FAILED_PRECONDITION  the variable is not set
  //   INVALID_ARGUMENT     as ParseFaultPlan, with the path
  //   others               the system's, of the plan or the report
  static absl::StatusOr<FaultState*> OfEnvironment();

  const FaultPlan& plan() const { return plan_; }

  // Counts a call, and does what the rules say about it: waits, or never returns.
  // `device` is null for calls on no device. Set if the driver is not to be asked.
  std::optional<Broken> OnCall(Function function, const DevicePlan* device);

  // Budgets as the file has them now.
  std::map<uint32_t, BudgetPlan> Budgets(const DevicePlan& device);

  // What the process holds of a heap, over all VkDevices of the section.
  uint64_t LiveHeapBytes(const DevicePlan& device, uint32_t heap);

  // Changes the counters of a device and writes the report.
  void Count(const DevicePlan& device, absl::FunctionRef<void(DeviceCounters&)> change);

  // A caller did what Vulkan forbids: into the report and to standard error, and
  // the process's end where the plan says so.
  void ReportViolation(absl::string_view text);

 private:
  // Which file it was, and when it was written.
  struct Version {
    ino_t inode = 0;
    timespec modified{};
    off_t size = 0;
    bool operator==(const Version& other) const {
      return inode == other.inode && size == other.size &&
             modified.tv_sec == other.modified.tv_sec && modified.tv_nsec == other.modified.tv_nsec;
    }
  };

  FaultState(std::string path, Version version, FaultPlan plan,
             std::unique_ptr<SharedReport> shared);
  static absl::StatusOr<std::unique_ptr<FaultState>> Create(const std::string& path);
  static absl::StatusOr<Version> VersionOf(const std::string& path);

  Decision Decide(Function function, const DevicePlan* device)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeRules(const FaultPlan& plan) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes the file's rules and budgets if it has changed.
  absl::Status Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefreshOrComplain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Complain(absl::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteReport() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const FaultPlan plan_;
  Mutex mutex_;
  Version version_ ABSL_GUARDED_BY(mutex_);
  FaultRules global_rules_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, FaultRules> device_rules_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::map<uint32_t, BudgetPlan>> budgets_ ABSL_GUARDED_BY(mutex_);
  Report report_ ABSL_GUARDED_BY(mutex_);
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<SharedReport> shared_ ABSL_GUARDED_BY(mutex_);  // Null: no report.
};

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_LAYER_FAULT_STATE_H_
