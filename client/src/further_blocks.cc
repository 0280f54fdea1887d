// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/further_blocks.h"

#include <utility>

#include "client/src/buffer_ranges.h"
#include "common/base/status_macros.h"

namespace heapbroker {

FurtherBlocks::FurtherBlocks(const Client& client, VulkanImporter& importer,
                             const AllocationRequest& request, const AllocateOptions& options)
    : client_(client), importer_(importer), request_(request), options_(options) {}

FurtherBlocks::~FurtherBlocks() {
  for (const std::unique_ptr<Block>& block : blocks_) Release(*block);
}

absl::StatusOr<Lease> FurtherBlocks::LeaseOne(Bytes wanted, Bytes needed,
                                              const CallLimits& limits) {
  AllocateOptions options = options_;
  if (wanted > needed) {
    options.timeout = limits.left();
    options.max_wait = absl::ZeroDuration();
    request_.size = wanted;
    absl::StatusOr<Lease> lease = client_.Allocate(request_, options);
    if (!absl::IsResourceExhausted(lease.status())) return lease;
  }
  options.timeout = limits.left();
  options.max_wait = options_.max_wait;
  request_.size = needed;
  return client_.Allocate(request_, options);
}

absl::StatusOr<Arena> FurtherBlocks::Add(Bytes wanted, Bytes needed) {
  auto block = std::make_unique<Block>();
  const CallLimits limits(options_.timeout.value_or(client_.call_timeout()), options_.cancellation);
  HB_ASSIGN_OR_RETURN(block->lease, LeaseOne(wanted, needed, limits));
  const absl::Status taken = Take(*block, limits);
  if (!taken.ok()) {
    block->buffer = DeviceBuffer();
    // There may be no time left for another call.
    block->lease.ReleaseLater();
    return taken;
  }
  blocks_.push_back(std::move(block));
  return ArenaOver(At(blocks_.size() - 1));
}

absl::Status FurtherBlocks::Take(Block& block, const CallLimits& limits) {
  HB_ASSIGN_OR_RETURN(
      block.buffer,
      importer_.Import(*block.lease.block(), ArenaUsage(block.lease.facts(), importer_.context()),
                       LeftOf(limits)));
  return importer_.AcquireAll({block.buffer});
}

void FurtherBlocks::Release(Block& block) {
  // Nobody is left to hear of errors; the lease gives the memory back in any case.
  importer_.ReleaseAll({block.buffer}).IgnoreError();
}

void FurtherBlocks::Drop(size_t position) {
  Release(*blocks_[position]);
  blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(position));
}

BufferRange FurtherBlocks::At(size_t position) const { return WholeOf(blocks_[position]->buffer); }

}  // namespace heapbroker
