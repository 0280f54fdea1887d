// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/byte_size.h"
#include "common/base/text.h"
#include "daemon/app/duration.h"
#include "daemon/app/version.h"

namespace heapbroker {
namespace {

// Refused values end as CLI11's own mistakes do: a text, and exit code 2.
template <typename T>
T OrThrow(absl::StatusOr<T> value, const std::string& flag) {
  if (!value.ok()) throw CLI::ValidationError(flag, std::string(value.status().message()));
  return *std::move(value);
}

// What CLI11 fills in; turned into options when all of it is there.
struct RawOptions {
  std::string runtime_dir;
  std::vector<std::string> devices;
  bool require_hardware = false;
  std::vector<std::string> heap_budgets;
  std::vector<std::string> pools;
  std::vector<std::string> matchings;
  std::vector<std::string> slacks;
  std::vector<std::string> idle_ttls;
  std::vector<std::string> head_timeouts;
  std::string clear = "auto";
  std::string software_tenants = "first";
  std::string log_level = "info";
  std::string record;
  std::string record_limit = "64mib";
  std::string replay;
};

// May be given again; each time with one value.
CLI::Option* AddRepeated(CLI::App& app, const std::string& flag, std::vector<std::string>& values,
                         const std::string& help) {
  return app.add_option(flag, values, help)->allow_extra_args(false);
}

void AddDeviceFlags(CLI::App& app, RawOptions& raw) {
  AddRepeated(app, "--device", raw.devices,
              "Vulkan device by index, name or UUID; may be given again, and the first is the "
              "default of requests. Default: all hardware, else the best software device, with a "
              "warning")
      ->envname("HEAPBROKER_DEVICE");
  app.add_flag("--require-hardware", raw.require_hardware,
               "Refuse software devices such as lavapipe");
  AddRepeated(
      app, "--heap-budget", raw.heap_budgets,
      "Most bytes to allocate: SIZE for every heap, HEAP=SIZE for one, DEVICE:HEAP=SIZE for "
      "one of the device of that position, such as 4GiB, 0=4GiB or 1:0=4GiB; may be given "
      "again. May exceed what the driver reports. Default: 90% of a heap, and of what the "
      "driver offers at the moment; of a software device at most half of the machine's "
      "memory");
  app.add_option("--clear", raw.clear,
                 "Clear new memory: auto (unless the driver is known to give zeros) or always")
      ->check(CLI::IsMember({"auto", "always"}))
      ->capture_default_str();
  app.add_option("--software-tenants", raw.software_tenants,
                 "Users that a software device serves: first (the first one that connects) or any "
                 "(they can crash the daemon and read each other's memory: only where they trust "
                 "each other)")
      ->check(CLI::IsMember({"first", "any"}))
      ->capture_default_str();
}

void AddPoolFlags(CLI::App& app, RawOptions& raw) {
  const std::string group = "Pools";
  AddRepeated(
      app, "--pool", raw.pools,
      "Pools, as KEY=MAX_ALLOCATION_SIZE;MAX_ALLOCATION_CAPACITY;MAX_FREE_ALLOCATION_COUNT"
      "[,...], such as device_local=1gib;4gib;32; may be given again, and pools are asked in "
      "that order. unbounded: no limit but the budget. Default: one for each memory type, "
      "64 idle blocks each")
      ->group(group);
  AddRepeated(app, "--pool-matching", raw.matchings,
              "best_fit (rounds new blocks up, and gives the smallest idle one that fits) or exact "
              "(the requested size only). Default: best_fit")
      ->check(CLI::IsMember({"best_fit", "exact"}))
      ->group(group);
  AddRepeated(app, "--pool-slack", raw.slacks,
              "How much larger than requested an idle block may be, in per cent, 0 to 100 with one "
              "decimal. Default: 12.5")
      ->group(group);
  AddRepeated(app, "--idle-ttl", raw.idle_ttls,
              "How long a block stays idle before it is freed, such as 10min, 90s or 500ms; 0: for "
              "ever. Default: 10min")
      ->group(group);
  AddRepeated(app, "--head-timeout", raw.head_timeouts,
              "How long the first of those who wait may hold memory that becomes free. Default: 5s")
      ->group(group);
}

void AddRecordingFlags(CLI::App& app, RawOptions& raw) {
  const std::string group = "Recording";
  CLI::Option* const record =
      app.add_option("--record", raw.record,
                     "Record what happens in this file, which must not exist; for its owner only")
          ->group(group);
  app.add_option("--record-limit", raw.record_limit, "Where the recording ends")
      ->capture_default_str()
      ->needs(record)
      ->group(group);
  app.add_option(
         "--replay", raw.replay,
         "Serve nobody: replay a recording and show what other pools would have made of it. "
         "Each --pool is then a configuration of its own, which may name several pools, and "
         "so are --pool-matching, --pool-slack, --idle-ttl and --head-timeout where they "
         "are given again: all combinations are tried. What is not given is as it was "
         "recorded")
      ->excludes(record)
      ->group(group);
}

void AddFlags(CLI::App& app, RawOptions& raw) {
  app.set_version_flag("--version", std::string("heapbrokerd ") + kVersion);
  app.add_option("--runtime-dir", raw.runtime_dir,
                 "Directory of the sockets; made if it is missing. Default: /run/heapbroker for "
                 "root, $XDG_RUNTIME_DIR/heapbroker for others")
      ->envname("HEAPBROKER_RUNTIME_DIR");
  app.add_option("--log-level", raw.log_level, "debug, info, warning or error")
      ->envname("HEAPBROKER_LOG_LEVEL")
      ->capture_default_str();
  AddDeviceFlags(app, raw);
  AddPoolFlags(app, raw);
  AddRecordingFlags(app, raw);
}

// Each value by `parse`, which returns a StatusOr.
template <typename Parse>
auto ParseEach(const std::vector<std::string>& texts, const std::string& flag, Parse parse) {
  std::vector<typename decltype(parse(std::string()))::value_type> values;
  for (const std::string& text : texts) values.push_back(OrThrow(parse(text), flag));
  return values;
}

// The one value, or `otherwise` where none was given.
template <typename T>
T TheOne(const std::vector<T>& values, const T& otherwise, const std::string& flag) {
  if (values.size() > 1) {
    throw CLI::ValidationError(flag, "may be given once only, but with --replay");
  }
  return values.empty() ? otherwise : values.front();
}

// The flags that mean the same for a daemon and for a replay; `pools` are not.
ReplayOptions InterpretPoolFlags(const RawOptions& raw) {
  ReplayOptions options;
  options.path = raw.replay;
  for (const std::string& text : raw.matchings) {
    options.matchings.push_back(text == "exact" ? Matching::kExact : Matching::kBestFit);
  }
  options.slacks_per_mille = ParseEach(raw.slacks, "--pool-slack", ParseSlack);
  options.idle_ttls = ParseEach(raw.idle_ttls, "--idle-ttl", ParseDurationOption);
  options.head_timeouts = ParseEach(raw.head_timeouts, "--head-timeout", ParseDurationOption);
  options.heap_budgets = ParseEach(raw.heap_budgets, "--heap-budget", ParseHeapBudget);
  for (const absl::Duration timeout : options.head_timeouts) {
    if (timeout > absl::ZeroDuration()) continue;
    throw CLI::ValidationError("--head-timeout", "must be longer than 0");
  }
  return options;
}

ReplayOptions InterpretReplay(const RawOptions& raw) {
  ReplayOptions options = InterpretPoolFlags(raw);
  for (const std::string& text : raw.pools) {
    options.pools.push_back({text, OrThrow(ParsePoolSpecs(text), "--pool")});
  }
  return options;
}

DaemonOptions InterpretDaemon(const RawOptions& raw) {
  const ReplayOptions pool_flags = InterpretPoolFlags(raw);
  DaemonOptions options;
  options.runtime_dir =
      raw.runtime_dir.empty() ? OrThrow(DefaultRuntimeDir(), "--runtime-dir") : raw.runtime_dir;
  options.devices = raw.devices;
  options.require_hardware = raw.require_hardware;
  options.heap_budgets = pool_flags.heap_budgets;
  options.pools = OrThrow(ParsePoolValues(raw.pools), "--pool");
  options.matching.matching =
      TheOne(pool_flags.matchings, options.matching.matching, "--pool-matching");
  options.matching.slack_per_mille =
      TheOne(pool_flags.slacks_per_mille, options.matching.slack_per_mille, "--pool-slack");
  options.idle_ttl = TheOne(pool_flags.idle_ttls, options.idle_ttl, "--idle-ttl");
  options.head_timeout = TheOne(pool_flags.head_timeouts, options.head_timeout, "--head-timeout");
  options.clear = raw.clear == "always" ? ClearMode::kAlways : ClearMode::kAuto;
  options.software_tenants =
      raw.software_tenants == "any" ? TenantRule::kAnyTenant : TenantRule::kFirstTenantOnly;
  options.log_level = OrThrow(ParseLogLevel(raw.log_level), "--log-level");
  if (!raw.record.empty()) {
    options.record = {raw.record, OrThrow(ParseByteSize(raw.record_limit), "--record-limit")};
  }
  return options;
}

}  // namespace

ParsedOptions ParseOptions(int argc, const char* const* argv) {
  constexpr int kUsageError = 2;
  CLI::App app("Owns a GPU's memory and lends it to the processes of this machine.", "heapbrokerd");
  RawOptions raw;
  AddFlags(app, raw);
  try {  // CLI11 speaks in exceptions; none leaves this function.
    app.parse(argc, argv);
    if (!raw.replay.empty()) return InterpretReplay(raw);
    return InterpretDaemon(raw);
  } catch (const CLI::ParseError& error) {
    return ExitNow{app.exit(error) == 0 ? 0 : kUsageError};
  }
}

absl::StatusOr<uint32_t> ParseSlack(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('.', 1));
  const bool has_decimal = parts.first.size() < text.size();
  uint32_t whole = 0;
  uint32_t tenth = 0;
  const auto only_digits = [](absl::string_view part) {
    return !part.empty() && std::all_of(part.begin(), part.end(), absl::ascii_isdigit);
  };
  if (only_digits(parts.first) && absl::SimpleAtoi(parts.first, &whole) && whole <= 100 &&
      (!has_decimal || (parts.second.size() == 1 && only_digits(parts.second) &&
                        absl::SimpleAtoi(parts.second, &tenth))) &&
      whole * 10 + tenth <= 1000) {
    return whole * 10 + tenth;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", Printable(text),
                   "\" is no slack: per cent from 0 to 100, with at most one decimal, as "
                   "in 12.5"));
}

absl::StatusOr<std::string> DefaultRuntimeDir() {
  if (geteuid() == 0) return std::string("/run/heapbroker");
  const char* const user_dir = std::getenv("XDG_RUNTIME_DIR");
  if (user_dir != nullptr && *user_dir != '\0') return std::string(user_dir) + "/heapbroker";
  return absl::FailedPreconditionError(
      "XDG_RUNTIME_DIR is not set, so there is no default; name a directory that only you can "
      "write");
}

}  // namespace heapbroker
