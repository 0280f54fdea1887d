// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A real client process that does what a test tells it.
#ifndef TESTS_INTEGRATION_CLIENT_PROCESS_H_
#define TESTS_INTEGRATION_CLIENT_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/posix/unique_fd.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace heapbroker {

struct ClientProcessOptions {
  std::string runtime_dir;
  // As in ProcessOptions: who it is. Needs root.
  std::optional<uid_t> uid;
};

// Runs client_program, whose source lists the commands. Killed, if need be, when this
// object goes. Not thread-safe.
class ClientProcess {
 public:
  // Returns once the program is there; it is not connected to a daemon yet.
  static absl::StatusOr<std::unique_ptr<ClientProcess>> Start(const ClientProcessOptions& options);

  // Sends a command and waits for its answer: what the program was told by the
  // library. ABORTED, with how it ended, if the program is no more.
  absl::StatusOr<std::string> Ask(absl::string_view command,
                                  absl::Duration limit = absl::Seconds(60));

  // The two halves of Ask, for commands that wait for something.
  absl::Status Send(absl::string_view command);
  absl::StatusOr<std::string> Answer(absl::Duration limit = absl::Seconds(60));
  bool HasAnswer() const;

  // Ends the program in good order.
  absl::StatusOr<ExitStatus> Quit(absl::Duration limit = absl::Seconds(60));

  Process& process() { return process_; }
  pid_t pid() const { return process_.pid(); }

 private:
  ClientProcess(std::unique_ptr<TempDir> dir, Process process, UniqueFd control)
      : dir_(std::move(dir)), process_(std::move(process)), control_(std::move(control)) {}

  std::unique_ptr<TempDir> dir_;
  Process process_;
  UniqueFd control_;
};

// The value of `key` in an answer like "blocks=7,8 bytes=4096"; empty where it
// is missing.
std::string FieldOf(absl::string_view answer, absl::string_view key);
// The same as a number; 0 where it is missing.
uint64_t NumberOf(absl::string_view answer, absl::string_view key);

}  // namespace heapbroker
#endif  // TESTS_INTEGRATION_CLIENT_PROCESS_H_
