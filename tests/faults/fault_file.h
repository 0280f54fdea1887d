// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A plan for the fault layer, and what the layer reports.
#ifndef TESTS_FAULTS_FAULT_FILE_H_
#define TESTS_FAULTS_FAULT_FILE_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/faults/plan/report.h"
#include "tests/support/temp_dir.h"

namespace heapbroker {

// The plan of one process, which may run as any user, and the report that it
// writes. Ends the test program if the files cannot be made. Not thread-safe.
class FaultFile {
 public:
  // `plan` as tests/faults/README.md describes it, without the line `report`.
  explicit FaultFile(absl::string_view plan);

  // Replaces the plan at once; a running process follows with its next call, as far
  // as rules and budgets go.
  void Write(absl::string_view plan);

  // For the process: DaemonOptions::environment, ProcessOptions::environment.
  // Whatever layers this process would have stay in front of the fault layer.
  std::map<std::string, std::optional<std::string>> Environment() const;

  //   UNAVAILABLE  no process has written any
  absl::StatusOr<faults::Report> Report() const;

  // Counters of a device section; zeros, and the test failed, where there is no
  // report.
  faults::DeviceCounters Device(const std::string& name) const;
  // What the report complains about, a line each; "no report" where there is none.
  std::string Violations() const;

 private:
  TempDir dir_;
};

// Puts this process under a plan: Vulkan instances that it makes meanwhile. Sets
// environment variables, so no other thread may read them at the beginning or the
// end.
class ScopedFaults {
 public:
  explicit ScopedFaults(const FaultFile& file);
  ~ScopedFaults();
  ScopedFaults(const ScopedFaults&) = delete;
  ScopedFaults& operator=(const ScopedFaults&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace heapbroker
#endif  // TESTS_FAULTS_FAULT_FILE_H_
