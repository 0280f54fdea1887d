// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/placement.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace heapbroker {

Placements::Placements(const DeviceInfo& device, absl::Span<const ResolvedPool> pools)
    : device_(device), pools_(pools.begin(), pools.end()) {
  for (size_t kind = 0; kind < kMemoryKindCount; ++kind) {
    auto found = WorkOut(static_cast<MemoryKind>(kind), std::nullopt, /*transient=*/false);
    if (found.ok()) of_kind_[kind] = *std::move(found);
  }
}

absl::StatusOr<std::shared_ptr<const Placement>> Placements::Find(
    const MemoryWish& wish, std::optional<HandleType> handle_type, bool transient) const {
  if (const auto* kind = std::get_if<MemoryKind>(&wish); kind && !handle_type && !transient) {
    const std::shared_ptr<const Placement>& ready = of_kind_[static_cast<size_t>(*kind)];
    if (ready != nullptr) return ready;
  }
  return WorkOut(wish, handle_type, transient);
}

absl::StatusOr<std::shared_ptr<const Placement>> Placements::WorkOut(
    const MemoryWish& wish, std::optional<HandleType> handle_type, bool transient) const {
  auto placement = std::make_shared<Placement>();
  HB_ASSIGN_OR_RETURN(MemoryTypeChoices choices, ChooseMemoryTypes(device_, wish, handle_type));
  placement->handle_type = choices.handle_type;
  placement->types = std::move(choices.types);
  const auto choice_of = [&](const ResolvedPool& pool) {
    return std::find_if(placement->types.begin(), placement->types.end(),
                        [&](const auto& type) { return type.memory_type == pool.memory_type; });
  };
  size_t group = 0;  // Where the present run of every-type pools began.
  for (size_t i = 0; i < pools_.size(); ++i) {
    // Those of one key follow each other in the order of their types.
    if (!pools_[i].every_type || i == 0 || !pools_[i - 1].every_type ||
        pools_[i - 1].memory_type >= pools_[i].memory_type) {
      group = placement->pools.size();
    }
    const auto type = choice_of(pools_[i]);
    if (type == placement->types.end() || (pools_[i].transient && !transient)) continue;
    auto before = placement->pools.end();
    if (pools_[i].every_type) {
      before = std::find_if(placement->pools.begin() + static_cast<ptrdiff_t>(group),
                            placement->pools.end(),
                            [&](const PoolChoice& other) { return other.tier < type->tier; });
    }
    placement->pools.insert(before, {i, type->memory_type, type->tier});
  }
  return placement;
}

}  // namespace heapbroker
