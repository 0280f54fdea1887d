// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A piece of brokered memory, as the host and as the device see it.
#ifndef HEAPBROKER_BUFFER_RANGE_H_
#define HEAPBROKER_BUFFER_RANGE_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heapbroker/export.h"
#include "heapbroker/units.h"

namespace heapbroker {

class DeviceBuffer;

// What an allocator hands out: bytes of a DeviceBuffer, borrowed with it. Where the
// host cannot see the memory there is no pointer to be had, not even a null one:
// buffer and offset are what the device works with.
//
// A value, cheap to copy. Thread-safe, like the buffer.
class HEAPBROKER_EXPORT BufferRange {
 public:
  // Of no buffer: what an allocator without memory hands out for an empty request.
  BufferRange() = default;
  // `buffer` must hold the range, and outlive it.
  BufferRange(const DeviceBuffer& buffer, Bytes offset, Bytes size)
      : buffer_(&buffer), offset_(offset), size_(size) {}

  // Empty for a range of no buffer: DeviceBuffer::valid() is false.
  const DeviceBuffer& buffer() const;
  Bytes offset() const { return offset_; }  // In the buffer.
  Bytes size() const { return size_; }

  // Whether host() is OK. DEVICE_LOCAL memory need not be host-visible; whether it
  // is depends on the device.
  bool host_visible() const;

  // size() bytes in host memory.
  //   FAILED_PRECONDITION  the host cannot see this memory, or the range is of no
  //                        buffer
  absl::StatusOr<void*> host() const;

  // What shaders take for a pointer to the first byte. Only where the memory was
  // asked for with device addresses, and the importer's device has them.
  std::optional<uint64_t> device_address() const;

  // DeviceBuffer::Flush and Invalidate of just these bytes.
  absl::Status Flush() const;
  absl::Status Invalidate() const;

  // size() bytes from `offset` bytes into this range, which must lie in it.
  BufferRange Part(Bytes offset, Bytes size) const;

 private:
  const DeviceBuffer* buffer_ = nullptr;
  Bytes offset_{};
  Bytes size_{};
};

}  // namespace heapbroker
#endif  // HEAPBROKER_BUFFER_RANGE_H_
