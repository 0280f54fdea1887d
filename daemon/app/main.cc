// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// heapbrokerd: see README.md.
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "daemon/app/daemon.h"
#include "daemon/app/options.h"
#include "daemon/app/replay_command.h"
#include "daemon/app/signals.h"

int main(int argc, char** argv) {
  auto parsed = heapbroker::ParseOptions(argc, argv);
  if (const auto* exit = std::get_if<heapbroker::ExitNow>(&parsed)) return exit->code;
  if (const auto* replay = std::get_if<heapbroker::ReplayOptions>(&parsed)) {
    const auto table = heapbroker::RunReplay(*replay);
    (table.ok() ? std::cout : std::cerr)
        << (table.ok() ? *table : std::string(table.status().message()) + "\n");
    return table.ok() ? 0 : 1;
  }
  const auto& options = std::get<heapbroker::DaemonOptions>(parsed);
  const auto logger = heapbroker::MakeStderrLogger(options.log_level);

  heapbroker::EndSignals end_signals(*logger);  // Before any other thread is made.
  auto daemon = heapbroker::Daemon::Start(options, *logger);
  if (!daemon.ok()) {
    logger->Error(std::string(daemon.status().message()));
    return 1;
  }
  end_signals.Wait();
  if ((*daemon)->Stop()) daemon->reset();
  logger->Info("stopped");
  // Not through exit(): gRPC's own threads, which live on, take seconds there now
  // and then, and nothing of ours is left to be destroyed.
  _exit(0);
}
