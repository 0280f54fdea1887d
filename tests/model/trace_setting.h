// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The devices, limits and pools of random traces.
#ifndef TESTS_MODEL_TRACE_SETTING_H_
#define TESTS_MODEL_TRACE_SETTING_H_

#include <random>
#include <string>

#include "daemon/core/device_info.h"
#include "daemon/core/device_ledger.h"
#include "heapbroker/units.h"

namespace heapbroker {

struct TraceSetting {
  DeviceInfo device;
  LedgerOptions options;  // Names its pools.
  Bytes granularity = Bytes(1);
  Bytes extra;
  std::string text;  // For people: what was drawn.
};

// Drawn: the same for the same state of `random`.
TraceSetting DrawSetting(std::mt19937& random);

}  // namespace heapbroker
#endif  // TESTS_MODEL_TRACE_SETTING_H_
