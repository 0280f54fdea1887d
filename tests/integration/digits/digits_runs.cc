// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/digits/digits_runs.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/daemon_process.h"
#include "tests/support/wait_for.h"

namespace digits {

using heapbroker::CommandResult;
using heapbroker::Process;
using heapbroker::ProcessOptions;

ProcessOptions DigitsCommand(const std::string& runtime_dir,
                             const std::vector<std::string>& flags) {
  ProcessOptions options;
  options.command = {heapbroker::BuiltProgramPath("digits"), "--runtime-dir", runtime_dir};
  options.command.insert(options.command.end(), flags.begin(), flags.end());
  return options;
}

absl::StatusOr<CommandResult> RunDigits(const std::string& runtime_dir,
                                        const std::vector<std::string>& flags) {
  return heapbroker::RunCommand(DigitsCommand(runtime_dir, flags), kRunLimit);
}

absl::StatusOr<std::vector<Process>> StartHolding(ProcessOptions options, int count) {
  options.command.push_back("--hold-until-stdin-closes");
  options.input_pipe = true;
  std::vector<Process> processes;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<Process> process = Process::Start(options);
    if (!process.ok()) return process.status();
    processes.push_back(*std::move(process));
  }
  for (Process& process : processes) {
    const auto holds = [&] { return absl::StrContains(process.Output(), "holding"); };
    heapbroker::WaitFor([&] { return holds() || !process.Running(); }, kRunLimit);
    if (holds()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("no result; it printed:\n", process.Output(), process.ErrorOutput()));
  }
  return processes;
}

}  // namespace digits
