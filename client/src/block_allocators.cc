// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/block_allocators.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/buffer_ranges.h"
#include "client/src/ranges.h"
#include "common/base/status_macros.h"

namespace heapbroker {

PlannedAllocator::PlannedAllocator(std::vector<Memory> memories) : memories_(std::move(memories)) {
  for (const Memory& memory : memories_) {
    std::string label = absl::StrCat("memory id ", labels_.size());
    if (!memory.name.empty()) absl::StrAppend(&label, " (", memory.name, ")");
    labels_.push_back(std::move(label));
  }
}

absl::Status PlannedAllocator::CheckId(uint32_t memory_id) const {
  if (memory_id < memories_.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("there is no memory id ", memory_id,
                                                 ": the plan has ", memories_.size(),
                                                 " of them, from 0"));
}

absl::StatusOr<Bytes> PlannedAllocator::memory_size(uint32_t memory_id) const {
  HB_RETURN_IF_ERROR(CheckId(memory_id));
  return memories_[memory_id].range.size();
}

absl::StatusOr<uint32_t> PlannedAllocator::memory_id(absl::string_view name) const {
  for (size_t id = 0; id < memories_.size(); ++id) {
    if (!name.empty() && memories_[id].name == name) return static_cast<uint32_t>(id);
  }
  return absl::NotFoundError(absl::StrCat("the plan has no memory with the name \"", name, "\""));
}

absl::StatusOr<BufferRange> PlannedAllocator::get_offset_address(uint32_t memory_id, Bytes offset,
                                                                 Bytes size) const {
  HB_RETURN_IF_ERROR(CheckId(memory_id));
  const BufferRange& whole = memories_[memory_id].range;
  HB_RETURN_IF_ERROR(CheckRange(labels_[memory_id], offset, size, whole.size()));
  return whole.Part(offset, size);
}

BufferArena::BufferArena(const BufferRange& planned)
    : planned_(planned), chain_(ArenaOver(planned)) {}

BufferArena::BufferArena(const BufferRange& planned, const OverflowPlan& overflow,
                         std::unique_ptr<FurtherBlocks> further)
    : planned_(planned),
      further_(std::move(further)),
      chain_(ArenaOver(planned), overflow, *further_) {}

absl::StatusOr<BufferRange> BufferArena::Allocate(Bytes size, Bytes alignment) {
  HB_ASSIGN_OR_RETURN(const ArenaChain::Place place, chain_.Allocate(size, alignment));
  const BufferRange block = place.block == 0 ? planned_ : further_->At(place.block - 1);
  return block.Part(place.offset, size);
}

}  // namespace heapbroker
