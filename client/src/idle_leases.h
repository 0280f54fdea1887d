// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Blocks that nobody uses, and which of them go first.
#ifndef CLIENT_SRC_IDLE_LEASES_H_
#define CLIENT_SRC_IDLE_LEASES_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/src/leased_memory.h"
#include "heapbroker/memory_watch.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Bookkeeping only: what it hands out, the caller gives back. Takes time linear in the
// number of idle blocks, which are few and large. Not thread-safe.
class IdleLeases {
 public:
  using Block = std::unique_ptr<LeasedMemory>;
  using Time = std::chrono::steady_clock::time_point;

  // Returns what has to go so that at most `max_bytes` are idle, oldest first; that may
  // be `block`.
  std::vector<Block> Put(Block block, Time now, Bytes max_bytes);

  // The smallest block of this kind that has `size`, of several the one that was used
  // last; null where there is none.
  Block Take(const std::string& kind, Bytes size);

  // Oldest first: until at most `target` bytes are left; those that were there at
  // `since` or before; until `bytes` of this heap have gone; those whose lease is lost.
  std::vector<Block> TakeDownTo(Bytes target);
  std::vector<Block> TakeFrom(Time since);
  std::vector<Block> TakeOf(uint32_t device_index, uint32_t heap_index, Bytes bytes);
  std::vector<Block> TakeLost() {
    return TakeIf([](const LeasedMemory& memory) { return memory.lease.lost(); });
  }
  std::vector<Block> TakeIf(absl::FunctionRef<bool(const LeasedMemory&)> goes);

  // Since when the oldest is idle; unset where none is.
  std::optional<Time> oldest() const;

  Bytes bytes() const { return bytes_; }
  size_t count() const { return blocks_.size(); }
  // By heap, for MemoryWatch::ReportIdle.
  std::vector<IdleMemory> Report() const;

 private:
  struct Idle {
    Block block;
    Time since;
  };
  using Blocks = std::list<Idle>;

  // The next one.
  Blocks::iterator Move(Blocks::iterator from, std::vector<Block>& to);

  Blocks blocks_;  // Oldest first.
  Bytes bytes_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_IDLE_LEASES_H_
