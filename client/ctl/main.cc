// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// heapbrokerctl: shows who holds what, and trims. Reads the command line and prints.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "client/ctl/command.h"
#include "client/ctl/exit_code.h"
#include "client/ctl/watch_interval.h"
#include "common/base/byte_size.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

// Messages may quote names that others chose.
constexpr size_t kMaxMessageBytes = 4096;

constexpr char kExitCodes[] =
    "Exit codes: 0 fine, 1 refused (health: not serving), 2 usage, 3 daemon not reachable.";

// As it was given: some of it takes more than CLI11 to read.
struct CommandLine {
  Command command;
  bool json = false;
  std::string watch;
  std::string trim_target;
  std::optional<uint32_t> trim_device;
  std::optional<std::string> trim_pool;
  bool trim_segments = false;
};

CLI::App* AddVerb(CLI::App& app, CommandLine& line, Command::Verb verb, const std::string& name,
                  const std::string& description) {
  CLI::App* const sub = app.add_subcommand(name, description);
  sub->callback([&line, verb] { line.command.verb = verb; });
  sub->add_flag("--json", line.json, "Print the reply as protobuf's JSON");
  // Options of the program are understood behind the subcommand as well.
  sub->fallthrough();
  return sub;
}

void DescribeTrim(CLI::App& trim, CommandLine& line) {
  trim.add_option("TARGET", line.trim_target,
                  "Bytes that may stay leased and idle: 0 (the default), 512MiB, 4gb")
      ->type_name("");
  trim.add_option("--device", line.trim_device, "This device only; otherwise each one")
      ->type_name("INDEX")
      // Otherwise "-1" would be read, as a large number.
      ->check(CLI::Validator(CLI::NonNegativeNumber).description(""));
  trim.add_option("--pool", line.trim_pool, "This pool only, by its name in `heapbrokerctl pools`")
      ->type_name("NAME");
  trim.add_flag("--segments", line.trim_segments,
                "Free segments that nobody uses as well, oldest use first");
}

void DescribeVerbs(CLI::App& app, CommandLine& line) {
  using Verb = Command::Verb;
  AddVerb(app, line, Verb::kStats, "stats", "Devices, heaps and pools: what is in use")
      ->add_flag("--watch{1s}", line.watch,
                 "Again every second, or at --watch=INTERVAL from 100ms to 1h")
      ->type_name("");
  AddVerb(app, line, Verb::kPools, "pools", "Pools: limits, what they hold, how well they serve");
  AddVerb(app, line, Verb::kHeaps, "heaps", "Heaps and memory types: limits, and others' use");
  AddVerb(app, line, Verb::kSessions, "sessions", "Connected processes and what they hold")
      ->add_flag("--observers", line.command.with_observers,
                 "Also show observers: tools such as this one");
  AddVerb(app, line, Verb::kLeases, "leases", "Blocks that sessions hold")
      ->add_option("--session", line.command.session_id,
                   "Of this session only, by its id in `heapbrokerctl sessions`")
      ->type_name("ID")
      ->check(CLI::Validator(CLI::PositiveNumber).description(""));
  AddVerb(app, line, Verb::kSegments, "segments", "Named memory that processes share");
  DescribeTrim(*AddVerb(app, line, Verb::kTrim, "trim",
                        "Free idle blocks, oldest first (root and the daemon's user only)"),
               line);
  AddVerb(app, line, Verb::kHealth, "health", "Whether the daemon serves");
}

void Describe(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", "heapbrokerctl " HEAPBROKER_VERSION);
  app.require_subcommand(1);
  app.add_option("--runtime-dir", line.command.runtime_dir,
                 "The daemon's directory; otherwise $HEAPBROKER_RUNTIME_DIR, /run/heapbroker or "
                 "$XDG_RUNTIME_DIR/heapbroker")
      ->type_name("DIR");
  DescribeVerbs(app, line);
  app.footer(kExitCodes);
}

// What CLI11 could not check.
absl::StatusOr<Command> CommandOf(const CommandLine& line) {
  Command command = line.command;
  if (line.json) command.format = Command::Format::kJson;
  if (!line.watch.empty()) {
    HB_ASSIGN_OR_RETURN(command.watch_interval, ParseWatchInterval(line.watch));
  }
  if (!line.trim_target.empty()) {
    HB_ASSIGN_OR_RETURN(const Bytes target, ParseByteSize(line.trim_target));
    command.trim.set_target_bytes(target.count());
  }
  if (line.trim_device) command.trim.set_device_index(*line.trim_device);
  if (line.trim_pool) command.trim.set_pool(*line.trim_pool);
  command.trim.set_segments(line.trim_segments);
  return command;
}

int Fail(const std::string& message, ExitCode code) {
  std::fprintf(stderr, "heapbrokerctl: %s\n", Printable(message, kMaxMessageBytes).c_str());
  return static_cast<int>(code);
}

int Main(int argc, char** argv) {
  CommandLine line;
  CLI::App app("Shows what heapbrokerd holds, and for whom", "heapbrokerctl");
  Describe(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" with code 0 here.
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::kUsage);
  }
  const absl::StatusOr<Command> command = CommandOf(line);
  if (!command.ok()) return Fail(std::string(command.status().message()), ExitCode::kUsage);
  const absl::StatusOr<ExitCode> code = Run(*command);
  if (code.ok()) return static_cast<int>(*code);
  return Fail(std::string(code.status().message()), ExitCodeFor(code.status()));
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) { return heapbroker::Main(argc, argv); }
