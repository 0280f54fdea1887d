// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/logging.h"

#include <limits.h>
#include <poll.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace heapbroker {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// Room for the time and the level in front of a message, and behind it for a line
// break and the count of lines that were lost.
constexpr size_t kMaxMessageBytes = PIPE_BUF - 256;

std::string OneLine(absl::string_view message) {
  constexpr char kCut[] = " [cut]";
  std::string line;
  for (const char c : message) {
    if (line.size() > kMaxMessageBytes) break;
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppend(&line, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      line.push_back(c);
    }
  }
  if (line.size() <= kMaxMessageBytes) return line;
  size_t end = kMaxMessageBytes - sizeof(kCut);
  while (end > 0 && (line[end] & 0xC0) == 0x80) --end;  // Not inside of a character.
  line.resize(end);
  return line + kCut;
}

// Writes to standard error what can be written without waiting. The threads that
// log serve everybody, and must not stand still because somebody has stopped a
// terminal, or a pipe's reader does not read.
//
// The descriptor is shared with whoever started this process, so it is not made
// non-blocking; instead it is asked first, and a line is short enough (PIPE_BUF)
// for the answer to hold for all of it. Only other programs that write to the
// same pipe could make the answer untrue.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (lost_ != 0) {
      const std::string note = absl::StrCat(
          " (lines lost before this one, while standard error took no more: ", lost_, ")\n");
      line.resize(line.size() - 1);  // The line break.
      line.append(note.data(), note.data() + note.size());
    }
    lost_ = Write(line) ? 0 : lost_ + 1;
  }

  void flush_() override {}  // Nothing is kept back.

  static bool Write(const spdlog::memory_buf_t& line) {
    pollfd error_output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    // Anything beside POLLOUT says that nobody will ever read it.
    if (poll(&error_output, 1, /*timeout=*/0) != 1 || error_output.revents != POLLOUT) return false;
    return write(STDERR_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  }

  uint64_t lost_ = 0;  // Lines since the last that was written; guarded by the base's mutex.
};

class StderrLogger final : public Logger {
 public:
  explicit StderrLogger(LogLevel level) : logger_("heapbroker", std::make_shared<StderrSink>()) {
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc));
    logger_.set_level(ToSpdlog(level));
  }

  void Write(LogLevel level, absl::string_view message) override {
    const spdlog::level::level_enum spdlog_level = ToSpdlog(level);
    if (!logger_.should_log(spdlog_level)) return;
    const std::string line = OneLine(message);
    logger_.log(spdlog_level, spdlog::string_view_t(line.data(), line.size()));
  }

 private:
  spdlog::logger logger_;  // Ours alone, not in spdlog's registry.
};

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(absl::string_view text) {
  constexpr std::pair<const char*, LogLevel> kLevels[] = {{"debug", LogLevel::kDebug},
                                                          {"info", LogLevel::kInfo},
                                                          {"warning", LogLevel::kWarning},
                                                          {"error", LogLevel::kError}};
  for (const auto& [name, level] : kLevels) {
    if (absl::EqualsIgnoreCase(text, name)) return level;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown log level \"", text, "\"; choose one of debug, info, warning, error"));
}

std::unique_ptr<Logger> MakeStderrLogger(LogLevel level) {
  return std::make_unique<StderrLogger>(level);
}

}  // namespace heapbroker
