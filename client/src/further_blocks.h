// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Blocks that are leased when planned memory runs out.
#ifndef CLIENT_SRC_FURTHER_BLOCKS_H_
#define CLIENT_SRC_FURTHER_BLOCKS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/src/arena_chain.h"
#include "client/transport/call_limits.h"
#include "heapbroker/buffer_range.h"
#include "heapbroker/client.h"
#include "heapbroker/lease.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// Leases, imports and acquires each block as it is asked for, and releases it and
// gives it back when it is dropped; what is left when this ends as well. Uses the
// importer's queue. Not thread-safe.
class FurtherBlocks final : public FurtherMemory {
 public:
  // Blocks are as `request` says, but for the size. `importer` must outlive this.
  FurtherBlocks(const Client& client, VulkanImporter& importer, const AllocationRequest& request,
                const AllocateOptions& options);
  ~FurtherBlocks() override;

  // Errors of Client::Allocate and of VulkanImporter::Import. Waits for memory that
  // others hold only for what is `needed`.
  absl::StatusOr<Arena> Add(Bytes wanted, Bytes needed) override;
  void Drop(size_t position) override;

  // All of the block. Borrowed, until it is dropped.
  BufferRange At(size_t position) const;

 private:
  struct Block {
    Lease lease;
    DeviceBuffer buffer;  // Goes first.
  };

  absl::StatusOr<Lease> LeaseOne(Bytes wanted, Bytes needed, const CallLimits& limits);
  // Imports and acquires what is leased.
  absl::Status Take(Block& block, const CallLimits& limits);
  void Release(Block& block);

  Client client_;
  VulkanImporter& importer_;
  AllocationRequest request_;
  const AllocateOptions options_;
  std::vector<std::unique_ptr<Block>> blocks_;  // So that ranges can point to buffers.
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_FURTHER_BLOCKS_H_
