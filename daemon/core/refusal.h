// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Why there was no memory, for people and for programs.
#ifndef DAEMON_CORE_REFUSAL_H_
#define DAEMON_CORE_REFUSAL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Which limit a request met.
enum class LimitKind : uint8_t {
  kHeapBudget,          // Bytes of a heap.
  kMaxAllocationSize,   // Bytes of one allocation (VkPhysicalDeviceMaintenance3Properties).
  kMaxAllocationCount,  // Allocations of a device (maxMemoryAllocationCount, with a margin).
  kDescriptors,         // Open descriptors of the daemon (RLIMIT_NOFILE), as blocks.
  kMemoryMaps,          // Mappings of the daemon (vm.max_map_count), as blocks.
  kDriver,              // The driver had less than the daemon's budget.
  kWaitingCalls,        // Calls of one session that wait.
};

// Whether it is worth to ask again.
enum class RefusalKind : uint8_t {
  kNeverFits,     // Not even if everything else were given back.
  kLimitReached,  // Not now: the rest is in use.
};

// The figures are bytes or counts, as the limit has it.
struct Refusal {
  RefusalKind kind = RefusalKind::kLimitReached;
  LimitKind limit = LimitKind::kHeapBudget;
  std::optional<uint32_t> heap;  // Of kHeapBudget and kDriver; unset: of several.
  uint64_t value = 0;            // The limit; of several heaps the sum.
  uint64_t in_use = 0;           // What cannot be had now: held, and by whom it is not said.
  uint64_t requested = 0;
  // The largest single request that would fit now, as things are; 0: none would.
  uint64_t largest_now = 0;
  uint64_t free = 0;  // All that is free or idle, in one piece or not.

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

// What was wrong, what is allowed and what to do next.
std::string Sentence(const Refusal& refusal);

// RESOURCE_EXHAUSTED with the sentence, what else is known of the cause, and the
// values for RefusalOf.
absl::Status RefusalStatus(const Refusal& refusal, absl::string_view cause = "");
// Unset for any other status.
std::optional<Refusal> RefusalOf(const absl::Status& status);

}  // namespace heapbroker
#endif  // DAEMON_CORE_REFUSAL_H_
