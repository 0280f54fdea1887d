// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// An arena that may go on in further blocks.
#ifndef CLIENT_SRC_ARENA_CHAIN_H_
#define CLIENT_SRC_ARENA_CHAIN_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/arena.h"
#include "heapbroker/memory_plan.h"

namespace heapbroker {

// Where a chain's further blocks come from, and go back to.
class FurtherMemory {
 public:
  virtual ~FurtherMemory() = default;
  // One of `wanted` bytes, or of `needed`, the smaller of the two, where that is all
  // that is to be had; behind those that there are.
  virtual absl::StatusOr<Arena> Add(Bytes wanted, Bytes needed) = 0;
  // Ends the one at `position`, from 0; those behind it move up.
  virtual void Drop(size_t position) = 0;
};

// Planned memory first, then further blocks in the order in which they came:
// whatever fits into an earlier one goes there. Decides only; not thread-safe.
class ArenaChain {
 public:
  explicit ArenaChain(const Arena& planned) : arenas_{planned} {}
  // `source` is borrowed.
  ArenaChain(const Arena& planned, const OverflowPlan& overflow, FurtherMemory& source)
      : arenas_{planned}, overflow_(overflow), source_(&source) {}

  struct Place {
    size_t block = 0;  // 0: the planned memory; n: the further block at n - 1.
    Bytes offset;
  };
  // As Arena::Allocate; where a further block is needed and not to be had, the
  // source's error.
  absl::StatusOr<Place> Allocate(Bytes size, Bytes alignment);

  // See ArenaAllocator::Reset.
  void Reset();

  Bytes planned() const { return arenas_.front().capacity(); }
  Bytes used() const;
  Bytes peak() const { return peak_; }  // Largest used() ever.
  Bytes overflow() const;               // Bytes of further blocks.

 private:
  std::optional<Place> Find(Bytes size, Bytes alignment);
  absl::Status AddBlock(Bytes size, Bytes alignment);

  std::vector<Arena> arenas_;  // The planned one first.
  OverflowPlan overflow_;
  FurtherMemory* source_ = nullptr;
  Bytes peak_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_ARENA_CHAIN_H_
