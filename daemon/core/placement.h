// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Where memory of a wish may lie.
#ifndef DAEMON_CORE_PLACEMENT_H_
#define DAEMON_CORE_PLACEMENT_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "daemon/core/device_info.h"
#include "daemon/core/memory_type_choice.h"
#include "daemon/core/pool_spec.h"
#include "daemon/core/requests.h"

namespace heapbroker {

// One pool that may serve a wish. `tier` as in MemoryTypeChoice.
struct PoolChoice {
  size_t pool = 0;
  uint32_t memory_type = 0;
  int tier = 0;
};

struct Placement {
  HandleType handle_type = HandleType::kOpaqueFd;
  // What may serve it without a pool, the best first.
  std::vector<MemoryTypeChoice> types;
  // In the order in which they are asked: that of the configuration, but among the
  // pools of one key for every memory type the best type first.
  std::vector<PoolChoice> pools;
};

// Finds the placement of a request. What most requests ask for is worked out once.
// Immutable, and therefore thread-safe.
class Placements {
 public:
  // `device` must outlive this. A pool's index is its position in `pools`.
  Placements(const DeviceInfo& device, absl::Span<const ResolvedPool> pools);

  //   INVALID_ARGUMENT     a memory type that the device does not have
  //   FAILED_PRECONDITION  no memory of the device will do; says what there is
  absl::StatusOr<std::shared_ptr<const Placement>> Find(const MemoryWish& wish,
                                                        std::optional<HandleType> handle_type,
                                                        bool transient) const;

 private:
  absl::StatusOr<std::shared_ptr<const Placement>> WorkOut(const MemoryWish& wish,
                                                           std::optional<HandleType> handle_type,
                                                           bool transient) const;

  const DeviceInfo& device_;
  const std::vector<ResolvedPool> pools_;
  // Of kinds, for an unset handle type and blocks that are not transient; null
  // where there is an error to tell.
  std::array<std::shared_ptr<const Placement>, kMemoryKindCount> of_kind_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_PLACEMENT_H_
