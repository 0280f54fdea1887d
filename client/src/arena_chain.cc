// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/arena_chain.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {

std::optional<ArenaChain::Place> ArenaChain::Find(Bytes size, Bytes alignment) {
  for (size_t block = 0; block < arenas_.size(); ++block) {
    const std::optional<Bytes> offset = arenas_[block].TryAllocate(size, alignment);
    if (!offset) continue;
    peak_ = std::max(peak_, used());
    return Place{.block = block, .offset = *offset};
  }
  return std::nullopt;
}

absl::StatusOr<ArenaChain::Place> ArenaChain::Allocate(Bytes size, Bytes alignment) {
  HB_RETURN_IF_ERROR(CheckAlignment(alignment));
  if (const std::optional<Place> place = Find(size, alignment)) return *place;
  if (source_ == nullptr) return arenas_.front().Allocate(size, alignment).status();
  HB_RETURN_IF_ERROR(AddBlock(size, alignment));
  if (const std::optional<Place> place = Find(size, alignment)) return *place;
  return absl::InternalError(absl::StrCat("a further block has no room for the ", size.count(),
                                          " bytes that it was leased for"));
}

absl::Status ArenaChain::AddBlock(Bytes size, Bytes alignment) {
  // Enough wherever the block will begin.
  const std::optional<Bytes> needed = CheckedAdd(size, alignment - Bytes(1));
  const Bytes left = overflow_.limit - overflow();
  if (!needed || *needed > left) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the arena has no room for ", size.count(), " bytes aligned to ", alignment.count(),
        ", and beyond what was planned there are ", overflow().count(), " of the ",
        overflow_.limit.count(), " bytes that OverflowPlan::limit allows; reset it, or plan more"));
  }
  const Bytes wanted = std::max(*needed, std::min(overflow_.step, left));
  HB_ASSIGN_OR_RETURN(const Arena further, source_->Add(wanted, *needed));
  arenas_.push_back(further);
  return absl::OkStatus();
}

void ArenaChain::Reset() {
  for (size_t block = arenas_.size(); block-- > 1;) {
    if (arenas_[block].used() > Bytes(0)) continue;
    source_->Drop(block - 1);
    arenas_.erase(arenas_.begin() + static_cast<std::ptrdiff_t>(block));
  }
  for (Arena& arena : arenas_) arena.Reset();
}

Bytes ArenaChain::used() const {
  Bytes sum;
  for (const Arena& arena : arenas_) sum += arena.used();
  return sum;
}

Bytes ArenaChain::overflow() const {
  Bytes sum;
  for (size_t block = 1; block < arenas_.size(); ++block) sum += arenas_[block].capacity();
  return sum;
}

}  // namespace heapbroker
