// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One run of heapbrokerctl, behind the command line.
#ifndef CLIENT_CTL_COMMAND_H_
#define CLIENT_CTL_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/ctl/exit_code.h"
#include "heapbroker/v1/admin.pb.h"

namespace heapbroker {

struct Command {
  enum class Verb { kStats, kPools, kHeaps, kSessions, kLeases, kSegments, kTrim, kHealth };
  enum class Format { kText, kJson };

  Verb verb = Verb::kStats;
  Format format = Format::kText;
  std::string runtime_dir;                       // As in ClientOptions.
  bool with_observers = false;                   // kSessions only.
  uint64_t session_id = 0;                       // kLeases only: of all where it is 0.
  std::optional<absl::Duration> watch_interval;  // kStats only: for ever.
  v1::TrimRequest trim;                          // kTrim only.
};

// Connects, asks, renders, writes to standard output. Errors of Queries,
// RenderJson and WriteOutput.
absl::StatusOr<ExitCode> Run(const Command& command);

}  // namespace heapbroker
#endif  // CLIENT_CTL_COMMAND_H_
