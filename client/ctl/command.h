// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One run of heapbrokerctl, behind the command line.
#ifndef CLIENT_CTL_COMMAND_H_
#define CLIENT_CTL_COMMAND_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/ctl/exit_code.h"

namespace heapbroker {

struct Command {
  enum class Verb { kStats, kSessions, kSegments, kHealth };
  enum class Format { kText, kJson };

  Verb verb = Verb::kStats;
  Format format = Format::kText;
  std::string runtime_dir;      // As in ClientOptions.
  bool with_observers = false;  // kSessions only.
};

// What goes to standard output, and how the program ends.
struct Answer {
  std::string text;
  ExitCode exit_code = ExitCode::kFine;
};

// Connects, asks, renders. Errors of Queries and RenderJson.
absl::StatusOr<Answer> Run(const Command& command);

}  // namespace heapbroker
#endif  // CLIENT_CTL_COMMAND_H_
