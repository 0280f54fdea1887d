// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The allocators that lie in leased blocks.
#ifndef CLIENT_SRC_BLOCK_ALLOCATORS_H_
#define CLIENT_SRC_BLOCK_ALLOCATORS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/src/arena_chain.h"
#include "client/src/further_blocks.h"
#include "heapbroker/allocators.h"

namespace heapbroker {

// A range for each memory id. Immutable.
class PlannedAllocator final : public HierarchicalAllocator {
 public:
  struct Memory {
    BufferRange range;
    std::string name;  // May be empty.
  };
  explicit PlannedAllocator(std::vector<Memory> memories);

  size_t memory_count() const override { return memories_.size(); }
  absl::StatusOr<Bytes> memory_size(uint32_t memory_id) const override;
  absl::StatusOr<uint32_t> memory_id(absl::string_view name) const override;
  absl::StatusOr<BufferRange> get_offset_address(uint32_t memory_id, Bytes offset,
                                                 Bytes size) const override;

 private:
  absl::Status CheckId(uint32_t memory_id) const;

  const std::vector<Memory> memories_;
  std::vector<std::string> labels_;  // For messages.
};

// Over a range; over one of no buffer there is room for nothing.
class BufferArena final : public ArenaAllocator {
 public:
  explicit BufferArena(const BufferRange& planned);
  // Goes on in what `further` leases.
  BufferArena(const BufferRange& planned, const OverflowPlan& overflow,
              std::unique_ptr<FurtherBlocks> further);

  absl::StatusOr<BufferRange> Allocate(Bytes size, Bytes alignment) override;
  void Reset() override { chain_.Reset(); }
  Bytes size() const override { return chain_.planned(); }
  Bytes used() const override { return chain_.used(); }
  Bytes peak() const override { return chain_.peak(); }
  Bytes overflow() const override { return chain_.overflow(); }
  BufferRange planned() const override { return planned_; }

 private:
  const BufferRange planned_;
  const std::unique_ptr<FurtherBlocks> further_;
  ArenaChain chain_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_BLOCK_ALLOCATORS_H_
