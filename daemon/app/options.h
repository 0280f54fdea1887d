// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What the daemon is told on its command line.
#ifndef DAEMON_APP_OPTIONS_H_
#define DAEMON_APP_OPTIONS_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/posix/logging.h"
#include "daemon/app/heap_budgets.h"
#include "daemon/core/device_ledger.h"
#include "daemon/vulkan/device_choice.h"
#include "daemon/vulkan/vulkan_memory.h"

namespace heapbroker {

struct DaemonOptions {
  std::string runtime_dir;
  DeviceSelector device;
  std::vector<HeapBudgetOption> heap_budgets;
  ClearMode clear = ClearMode::kAuto;
  // Of a software device; hardware serves any tenant.
  TenantRule software_tenants = TenantRule::kFirstTenantOnly;
  LogLevel log_level = LogLevel::kInfo;
};

// The command line ended here: with --help, --version or a mistake, about which
// everything has been printed.
struct ExitNow {
  int code = 0;
};

// Flags, and environment variables for those that name them.
std::variant<DaemonOptions, ExitNow> ParseOptions(int argc, const char* const* argv);

// Where sockets go unless told otherwise: /run/heapbroker for root,
// $XDG_RUNTIME_DIR/heapbroker for others.
//   FAILED_PRECONDITION  neither; says to name a directory
absl::StatusOr<std::string> DefaultRuntimeDir();

}  // namespace heapbroker
#endif  // DAEMON_APP_OPTIONS_H_
