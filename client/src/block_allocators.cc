// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/block_allocators.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/src/buffer_ranges.h"
#include "client/src/ranges.h"
#include "common/base/status_macros.h"

namespace heapbroker {

absl::StatusOr<BufferRange> PlannedAllocator::Get(uint32_t memory_id, Bytes offset,
                                                  Bytes size) const {
  if (memory_id >= buffers_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no memory id ", memory_id,
                                                   ": the plan has ", buffers_.size(),
                                                   " of them, from 0"));
  }
  const DeviceBuffer& buffer = buffers_[memory_id];
  HB_RETURN_IF_ERROR(
      CheckRange(absl::StrCat("memory id ", memory_id), offset, size, buffer.size()));
  return RangeOf(buffer, offset, size);
}

absl::StatusOr<BufferRange> BufferArena::Allocate(Bytes size, Bytes alignment) {
  HB_ASSIGN_OR_RETURN(const Bytes offset, arena_.Allocate(size, alignment));
  if (!buffer_.valid()) return BufferRange{};
  return RangeOf(buffer_, offset, size);
}

}  // namespace heapbroker
