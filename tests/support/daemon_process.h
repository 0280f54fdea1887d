// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A real heapbrokerd for tests.
#ifndef TESTS_SUPPORT_DAEMON_PROCESS_H_
#define TESTS_SUPPORT_DAEMON_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace heapbroker {

// Of this build.
std::string HeapbrokerdPath();
std::string BuiltProgramPath(const std::string& name);  // "heapbrokerctl", "digits"

struct DaemonOptions {
  std::string program = HeapbrokerdPath();
  // Empty: a fresh directory of its own, removed afterwards.
  std::string runtime_dir = {};
  // After --runtime-dir.
  std::vector<std::string> flags = {};
  std::map<std::string, std::optional<std::string>> environment = {};
  std::optional<uid_t> uid =
      std::nullopt;  // As in ProcessOptions; needs a runtime_dir of that user's.
  absl::Duration ready_within = absl::Seconds(30);
};

// Killed, if need be, when this object goes. Not thread-safe.
class DaemonProcess {
 public:
  // Returns once the daemon answers SERVING to a health check. If it ends or
  // does not get there in time, the error holds what it logged.
  static absl::StatusOr<std::unique_ptr<DaemonProcess>> Start(DaemonOptions options = {});

  const std::string& runtime_dir() const { return runtime_dir_; }
  pid_t pid() const { return process_.pid(); }
  // For signals, and for waiting for an end that the test did not ask for.
  Process& process() { return process_; }

  // SIGTERM, then how it ended. DEADLINE_EXCEEDED if it takes longer than
  // `limit`, with what it logged.
  absl::StatusOr<ExitStatus> Stop(absl::Duration limit = absl::Seconds(10));

  // What it logged so far.
  std::string Log() const { return process_.ErrorOutput(); }

 private:
  DaemonProcess(std::unique_ptr<TempDir> own_dir, std::string runtime_dir, Process process)
      : own_dir_(std::move(own_dir)),
        runtime_dir_(std::move(runtime_dir)),
        process_(std::move(process)) {}
  absl::Status AwaitReady(absl::Duration limit);

  std::unique_ptr<TempDir> own_dir_;  // Outlives the process.
  std::string runtime_dir_;
  Process process_;
};

}  // namespace heapbroker
#endif  // TESTS_SUPPORT_DAEMON_PROCESS_H_
