// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/logging.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

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

std::string OneLine(absl::string_view message) {
  std::string line;
  line.reserve(message.size());
  for (const char c : message) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppend(&line, "\\x", absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    } else {
      line.push_back(c);
    }
  }
  return line;
}

class StderrLogger final : public Logger {
 public:
  explicit StderrLogger(LogLevel level)
      : logger_("heapbroker", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc));
    logger_.set_level(ToSpdlog(level));
    logger_.flush_on(spdlog::level::debug);
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
