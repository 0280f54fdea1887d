// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What the command line means for the devices that were opened.
#ifndef DAEMON_APP_LEDGERS_H_
#define DAEMON_APP_LEDGERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/app/count_limits.h"
#include "daemon/app/options.h"
#include "daemon/core/device_info.h"
#include "daemon/core/device_ledger.h"
#include "heapbroker/units.h"

namespace heapbroker {

// The machine, as far as devices share it.
struct Machine {
  ProcessLimits limits;
  Bytes memory;  // As MachineMemory().
};

struct Ledgers {
  std::vector<LedgerOptions> options;  // One for each device.
  std::vector<std::string> warnings;   // What an administrator should know.
};

// The limits and pools of each device. What is the machine's they share evenly:
// descriptors between all, memory and mappings between software devices.
//   INVALID_ARGUMENT     a budget for a device or heap that is not there
//   FAILED_PRECONDITION  pools of what no device has
absl::StatusOr<Ledgers> ChooseLedgers(absl::Span<const DeviceInfo> devices,
                                      const DaemonOptions& options, const Machine& machine);

}  // namespace heapbroker
#endif  // DAEMON_APP_LEDGERS_H_
