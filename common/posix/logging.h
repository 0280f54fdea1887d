// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the daemon says to whoever runs it.
#ifndef COMMON_POSIX_LOGGING_H_
#define COMMON_POSIX_LOGGING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace heapbroker {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// "debug", "info", "warning" or "error", in upper or lower case.
//   INVALID_ARGUMENT  anything else
absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view text);

// Passed to whoever has something to say. Implementations are thread-safe.
class Logger {
 public:
  virtual ~Logger() = default;

  // One message. What a peer wrote goes through Printable() first.
  virtual void Write(LogLevel level, absl::string_view message) = 0;

  void Debug(absl::string_view message) { Write(LogLevel::kDebug, message); }
  void Info(absl::string_view message) { Write(LogLevel::kInfo, message); }
  void Warning(absl::string_view message) { Write(LogLevel::kWarning, message); }
  void Error(absl::string_view message) { Write(LogLevel::kError, message); }
};

// Writes to standard error, one line for each message of at least `level`, with
// time (UTC) and level. Line breaks and other control characters in a message
// are written as \xNN, so that no message can forge another, and what is longer
// than a few thousand bytes is cut.
//
// Never waits: while standard error takes nothing (a full pipe, a stopped
// terminal) lines are lost, and the next one that is written says how many.
std::unique_ptr<Logger> MakeStderrLogger(LogLevel level);

}  // namespace heapbroker
#endif  // COMMON_POSIX_LOGGING_H_
