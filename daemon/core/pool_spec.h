// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The configuration string of the pools, and the pools that it makes of a
// device. The notation is IREE's; daemon/README.md tells where the meaning is not.
#ifndef DAEMON_CORE_POOL_SPEC_H_
#define DAEMON_CORE_POOL_SPEC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/core/device_info.h"
#include "daemon/core/memory_type_wish.h"
#include "daemon/core/stats.h"

namespace heapbroker {

// One pool as configured, for any device.
struct PoolSpec {
  // The key, in lower case and without spaces: a part of the pools' names. "*"
  // where none was given.
  std::string text;
  // One pool for each exportable memory type that has the wish, not only for the
  // first one.
  bool every_type = false;
  MemoryTypeWish wish;
  PoolLimits limits;
};

// Parses the value of one --pool: `pair[,pair...]`, a pair being
// `heap_key=max_allocation_size;max_allocation_capacity;max_free_allocation_count`.
// An empty text means every memory type with the default limits, `unbounded` every
// memory type without a limit.
//   INVALID_ARGUMENT  quotes the pair, gives the position in it, in bytes from 0,
//                     and says what is allowed there
absl::StatusOr<std::vector<PoolSpec>> ParsePoolSpecs(absl::string_view text);

// All values of --pool, one after the other. Without any, every memory type with
// the default limits. `unbounded` must be the only one.
absl::StatusOr<std::vector<PoolSpec>> ParsePoolValues(absl::Span<const std::string> values);

// One pool of one device.
struct ResolvedPool {
  // Unlike that of any other pool of the device: "device_local (type 1)", or
  // "type 1" for a pool of every memory type; " #2" follows where it would not be.
  std::string name;
  uint32_t memory_type = 0;
  bool every_type = false;  // Made by a spec for every memory type.
  bool transient = false;   // Serves only requests that are marked so.
  PoolLimits limits;
};

struct ResolvedPools {
  std::vector<ResolvedPool> pools;  // In the order in which they are scanned.
  std::vector<std::string> notes;   // Sentences for the log, at the level of a warning.
  std::vector<bool> matched;        // By spec: whether it made a pool here.
  // What CheckEverySpecMatches says of the device.
  std::string offers;           // "device 0 (name): device_local, host_visible|host_coherent"
  bool any_host_local = false;  // Some exportable type satisfies `host_local`.
};

// The pools of one device: a spec takes the first exportable memory type, in the
// device's order, that has all of its wish, or all such types with `every_type`.
// A spec without one, or one that is never reached, leaves a note.
ResolvedPools ResolvePools(absl::Span<const PoolSpec> specs, const DeviceInfo& device);

// Whether each spec made a pool on at least one device; `devices` holds the result
// of ResolvePools for the same specs and each device. `host_local` may be unused
// where memory is unified: a configuration can be shared by unlike machines.
//   FAILED_PRECONDITION  names the key, what the devices have, and the known names
absl::Status CheckEverySpecMatches(absl::Span<const PoolSpec> specs,
                                   absl::Span<const ResolvedPools> devices);

}  // namespace heapbroker
#endif  // DAEMON_CORE_POOL_SPEC_H_
