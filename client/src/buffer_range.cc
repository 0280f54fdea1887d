// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/buffer_range.h"

#include <cassert>

#include "absl/strings/str_cat.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

const DeviceBuffer& BufferRange::buffer() const {
  static const DeviceBuffer* const none = new DeviceBuffer();
  return buffer_ == nullptr ? *none : *buffer_;
}

bool BufferRange::host_visible() const { return buffer().mapped() != nullptr; }

absl::StatusOr<void*> BufferRange::host() const {
  void* const mapped = buffer().mapped();
  if (mapped != nullptr) return static_cast<char*>(mapped) + offset_.count();
  if (!buffer().valid()) {
    return absl::FailedPreconditionError(
        "an allocator without memory has no address to give; plan a size for it");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("block ", buffer().facts().block_id, " is not host-visible (memory type ",
                   buffer().facts().memory_type_index, ", property flags 0x",
                   absl::Hex(buffer().facts().memory_property_flags),
                   "); copy through memory that is, or plan a kind that the host can map"));
}

std::optional<uint64_t> BufferRange::device_address() const {
  const std::optional<uint64_t> start = buffer().device_address();
  if (!start) return std::nullopt;
  return *start + offset_.count();
}

absl::Status BufferRange::Flush() const { return buffer().Flush(offset_, size_); }

absl::Status BufferRange::Invalidate() const { return buffer().Invalidate(offset_, size_); }

BufferRange BufferRange::Part(Bytes offset, Bytes size) const {
  assert(offset <= size_ && size <= size_ - offset);
  BufferRange part = *this;
  part.offset_ += offset;
  part.size_ = size;
  return part;
}

}  // namespace heapbroker
