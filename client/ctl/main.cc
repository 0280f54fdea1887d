// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// heapbrokerctl: shows who holds what. Reads the command line and prints.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "client/ctl/command.h"
#include "client/ctl/exit_code.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

// Messages may quote names that others chose.
constexpr size_t kMaxMessageBytes = 4096;

constexpr char kExitCodes[] =
    "Exit codes: 0 fine, 1 refused (health: not serving), 2 usage, 3 daemon not reachable.";

struct CommandLine {
  Command command;
  bool json = false;
};

void AddVerb(CLI::App& app, CommandLine& line, Command::Verb verb, const std::string& name,
             const std::string& description) {
  CLI::App* const sub = app.add_subcommand(name, description);
  sub->callback([&line, verb] { line.command.verb = verb; });
  sub->add_flag("--json", line.json, "Print the reply as protobuf's JSON");
  if (verb == Command::Verb::kSessions) {
    sub->add_flag("--observers", line.command.with_observers,
                  "Also show observers: tools such as this one");
  }
  // Options of the program are understood behind the subcommand as well.
  sub->fallthrough();
}

void Describe(CLI::App& app, CommandLine& line) {
  app.set_version_flag("--version", "heapbrokerctl " HEAPBROKER_VERSION);
  app.require_subcommand(1);
  app.add_option("--runtime-dir", line.command.runtime_dir,
                 "The daemon's directory; otherwise $HEAPBROKER_RUNTIME_DIR, /run/heapbroker or "
                 "$XDG_RUNTIME_DIR/heapbroker")
      ->type_name("DIR");
  AddVerb(app, line, Command::Verb::kStats, "stats", "Devices, heaps and pools: what is in use");
  AddVerb(app, line, Command::Verb::kSessions, "sessions",
          "Connected processes and what they hold");
  AddVerb(app, line, Command::Verb::kSegments, "segments", "Named memory that processes share");
  AddVerb(app, line, Command::Verb::kHealth, "health", "Whether the daemon serves");
  app.footer(kExitCodes);
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
  if (line.json) line.command.format = Command::Format::kJson;

  const absl::StatusOr<Answer> answer = Run(line.command);
  if (!answer.ok()) {
    return Fail(std::string(answer.status().message()), ExitCodeFor(answer.status()));
  }
  const bool written = std::fputs(answer->text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  if (!written) return Fail("cannot write to standard output", ExitCode::kRefused);
  return static_cast<int>(answer->exit_code);
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) { return heapbroker::Main(argc, argv); }
