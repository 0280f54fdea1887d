// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The constant allocator: weights in a segment.
#ifndef CLIENT_SRC_CONSTANT_ALLOCATOR_H_
#define CLIENT_SRC_CONSTANT_ALLOCATOR_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/src/ranges.h"
#include "client/transport/call_limits.h"
#include "heapbroker/allocators.h"
#include "heapbroker/client.h"
#include "heapbroker/segment.h"
#include "heapbroker/transfers.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

class SegmentAllocator final : public ConstantAllocator {
 public:
  // Imports the segment's blocks. `importer` must outlive it. A segment that is
  // not attached makes an allocator of size zero. `limits` are for the imports; after an
  // error the segment is closed as by CloseLater.
  static absl::StatusOr<std::unique_ptr<SegmentAllocator>> Create(const Client& client,
                                                                  VulkanImporter& importer,
                                                                  Segment segment,
                                                                  const CallLimits& limits);

  // Ends it without waiting for the daemon: nothing of it can be used any more. Its
  // buffers must not be acquired.
  void CloseLater();

  // In the segment's order. Whoever made the allocator acquires them before use,
  // and releases them at the end.
  const std::vector<DeviceBuffer>& buffers() const { return buffers_; }

  Bytes size() const override { return run_.size(); }
  bool must_fill() const override { return segment_.is_writer(); }
  const std::vector<Bytes>& block_starts() const override { return run_.starts(); }
  absl::StatusOr<BufferRange> get_offset_address(Bytes offset, Bytes size) const override;
  absl::Status Write(Bytes offset, const void* data, Bytes size, const CallOptions& call) override;
  absl::Status Seal(const CallOptions& call) override;
  Checksum checksum() const override { return segment_.checksum().value_or(Checksum{}); }
  absl::Status Verify(const CallOptions& call) override;

 private:
  SegmentAllocator(VulkanImporter& importer, Segment segment, BlockRun run,
                   std::unique_ptr<Transfers> transfers);

  absl::Status CheckFilling(absl::string_view what) const;
  absl::Status Import(const CallLimits& limits);
  absl::StatusOr<Checksum> ComputeChecksum(const CallLimits& limits);

  VulkanImporter& importer_;
  Segment segment_;
  const BlockRun run_;
  std::vector<DeviceBuffer> buffers_;
  const std::unique_ptr<Transfers> transfers_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_CONSTANT_ALLOCATOR_H_
