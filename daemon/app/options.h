// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What the daemon is told on its command line.
#ifndef DAEMON_APP_OPTIONS_H_
#define DAEMON_APP_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/posix/logging.h"
#include "daemon/app/heap_budgets.h"
#include "daemon/core/admission.h"
#include "daemon/core/device_ledger.h"
#include "daemon/core/pool_spec.h"
#include "daemon/vulkan/vulkan_memory.h"
#include "heapbroker/units.h"

namespace heapbroker {

// --record and --record-limit.
struct RecordOptions {
  std::string path;
  Bytes limit = MiB(64);
};

struct DaemonOptions {
  std::string runtime_dir;
  std::vector<std::string> devices;  // As DeviceSelector::text; none: all hardware.
  bool require_hardware = false;
  std::vector<HeapBudgetOption> heap_budgets;
  std::vector<PoolSpec> pools;
  MatchingPolicy matching;
  absl::Duration idle_ttl = AdmissionOptions().idle_ttl;
  absl::Duration head_timeout = AdmissionOptions().head_timeout;
  ClearMode clear = ClearMode::kAuto;
  // Of a software device; hardware serves any tenant.
  TenantRule software_tenants = TenantRule::kFirstTenantOnly;
  LogLevel log_level = LogLevel::kInfo;
  std::optional<RecordOptions> record;
};

// --replay: nobody is served; other pools are tried on a recording. Every
// combination of what is given is a configuration; what is not given is as it was
// recorded.
struct ReplayOptions {
  struct Pools {
    std::string text;
    std::vector<PoolSpec> specs;
  };
  std::string path;
  std::vector<Pools> pools;
  std::vector<Matching> matchings;
  std::vector<uint32_t> slacks_per_mille;
  std::vector<absl::Duration> idle_ttls;
  std::vector<absl::Duration> head_timeouts;
  std::vector<HeapBudgetOption> heap_budgets;  // Of each of the configurations.
};

// The command line ended here: with --help, --version or a mistake, about which
// everything has been printed.
struct ExitNow {
  int code = 0;
};

using ParsedOptions = std::variant<DaemonOptions, ReplayOptions, ExitNow>;

// Flags, and environment variables for those that name them.
ParsedOptions ParseOptions(int argc, const char* const* argv);

// "12.5" or "0", in per cent, as thousandths; INVALID_ARGUMENT for anything else, for
// more than one decimal and for more than 100.
absl::StatusOr<uint32_t> ParseSlack(absl::string_view text);

// Where sockets go unless told otherwise: /run/heapbroker for root,
// $XDG_RUNTIME_DIR/heapbroker for others.
//   FAILED_PRECONDITION  neither; says to name a directory
absl::StatusOr<std::string> DefaultRuntimeDir();

}  // namespace heapbroker
#endif  // DAEMON_APP_OPTIONS_H_
