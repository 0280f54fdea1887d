// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/options.h"

#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "common/base/status_macros.h"
#include "daemon/app/version.h"

namespace heapbroker {
namespace {

// Refused values end as CLI11's own mistakes do: a text, and exit code 2.
template <typename T>
T OrThrow(absl::StatusOr<T> value, const std::string& flag) {
  if (!value.ok()) throw CLI::ValidationError(flag, std::string(value.status().message()));
  return *std::move(value);
}

// What CLI11 fills in; turned into DaemonOptions when all of it is there.
struct RawOptions {
  std::string runtime_dir;
  std::string device;
  bool require_hardware = false;
  std::vector<std::string> heap_budgets;
  std::string clear = "auto";
  std::string software_tenants = "first";
  std::string log_level = "info";
};

void AddFlags(CLI::App& app, RawOptions& raw) {
  app.set_version_flag("--version", std::string("heapbrokerd ") + kVersion);
  app.add_option("--runtime-dir", raw.runtime_dir,
                 "Directory of the sockets; made if it is missing. Default: /run/heapbroker for "
                 "root, $XDG_RUNTIME_DIR/heapbroker for others")
      ->envname("HEAPBROKER_RUNTIME_DIR");
  app.add_option("--device", raw.device,
                 "Vulkan device by index, name or UUID. Default: the best one")
      ->envname("HEAPBROKER_DEVICE");
  app.add_flag("--require-hardware", raw.require_hardware,
               "Refuse software devices such as lavapipe");
  app.add_option(
      "--heap-budget", raw.heap_budgets,
      "Most bytes to allocate, SIZE for every heap or HEAP=SIZE for one, such as 4GiB or "
      "0=4GiB; may be given again. May exceed what the driver reports. Default: 90% of a "
      "heap; of a software device at most half of the machine's memory");
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
  app.add_option("--log-level", raw.log_level, "debug, info, warning or error")
      ->envname("HEAPBROKER_LOG_LEVEL")
      ->capture_default_str();
}

DaemonOptions Interpret(const RawOptions& raw) {
  DaemonOptions options;
  options.runtime_dir =
      raw.runtime_dir.empty() ? OrThrow(DefaultRuntimeDir(), "--runtime-dir") : raw.runtime_dir;
  options.device = {raw.device, raw.require_hardware};
  for (const std::string& text : raw.heap_budgets) {
    options.heap_budgets.push_back(OrThrow(ParseHeapBudget(text), "--heap-budget"));
  }
  options.clear = raw.clear == "always" ? ClearMode::kAlways : ClearMode::kAuto;
  options.software_tenants =
      raw.software_tenants == "any" ? TenantRule::kAnyTenant : TenantRule::kFirstTenantOnly;
  options.log_level = OrThrow(ParseLogLevel(raw.log_level), "--log-level");
  return options;
}

}  // namespace

std::variant<DaemonOptions, ExitNow> ParseOptions(int argc, const char* const* argv) {
  constexpr int kUsageError = 2;
  CLI::App app("Owns a GPU's memory and lends it to the processes of this machine.", "heapbrokerd");
  RawOptions raw;
  AddFlags(app, raw);
  try {  // CLI11 speaks in exceptions; none leaves this function.
    app.parse(argc, argv);
    return Interpret(raw);
  } catch (const CLI::ParseError& error) {
    return ExitNow{app.exit(error) == 0 ? 0 : kUsageError};
  }
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
