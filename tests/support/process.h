// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Child processes for tests: started, watched, killed, never left behind.
#ifndef TESTS_SUPPORT_PROCESS_H_
#define TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

// How a process ended. Exactly one of the two is set.
struct ExitStatus {
  std::optional<int> code;    // It returned from main or called exit.
  std::optional<int> signal;  // It was killed.

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

// For expectations: EXPECT_EQ(status, Exited(0)).
ExitStatus Exited(int code);
ExitStatus KilledBy(int signal);
std::ostream& operator<<(std::ostream& out, const ExitStatus& status);

struct ProcessOptions {
  // The program, a path or a name to be looked up in PATH, and its arguments.
  std::vector<std::string> command = {};
  // On top of the test's own environment. An unset value removes the variable.
  std::map<std::string, std::optional<std::string>> environment = {};
  // Run as this user, with the group of the same number and no others. Needs
  // root.
  std::optional<uid_t> uid = std::nullopt;
  // Standard input is a pipe that CloseInput ends, not /dev/null.
  bool input_pipe = false;
};

// One child. Dies with the thread that started it, and is killed and reaped
// when this object goes: no test leaves a process behind, however it ends.
// Output goes to memory, so a child never blocks on a reader. Not thread-safe.
class Process {
 public:
  // Returns once the program runs. The error is the exec's: NOT_FOUND when there
  // is no such program.
  static absl::StatusOr<Process> Start(const ProcessOptions& options);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  pid_t pid() const { return pid_; }

  // FAILED_PRECONDITION if the child has ended.
  absl::Status Signal(int signal);
  void CloseInput();

  // How it ended; asking again gives the same answer. DEADLINE_EXCEEDED, with
  // what the child wrote so far, if it still runs after `limit`.
  absl::StatusOr<ExitStatus> Wait(absl::Duration limit);
  bool Running() { return !Wait(absl::ZeroDuration()).ok(); }

  // What the child wrote so far.
  std::string Output() const;
  std::string ErrorOutput() const;

 private:
  Process() = default;
  void KillAndReap();

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd input_;
  UniqueFd output_;  // Files in memory that the child appends to.
  UniqueFd error_output_;
  std::optional<ExitStatus> exit_status_;
};

// What a command did, all of it.
struct CommandResult {
  ExitStatus status;
  std::string output;
  std::string error_output;
};

// Starts a command and waits for its end, which must come within `limit`.
absl::StatusOr<CommandResult> RunCommand(const ProcessOptions& options, absl::Duration limit);

}  // namespace heapbroker
#endif  // TESTS_SUPPORT_PROCESS_H_
