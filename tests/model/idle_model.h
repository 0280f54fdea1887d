// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Which blocks are idle, and what becomes of them: that a request gets one that fits, the
// best of them, and that the oldest go first.
#ifndef TESTS_MODEL_IDLE_MODEL_H_
#define TESTS_MODEL_IDLE_MODEL_H_

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "daemon/core/admission.h"
#include "daemon/core/block_class.h"
#include "daemon/core/stats.h"

namespace heapbroker {

// Knows blocks by the releases that it was told of, and the rest by the statistics' sums.
// Where several things happen at once, these do not tell which block went: it knows
// nothing then, until it is told anew what is idle. So all it knows is certain, and it
// fails the test where that cannot be.
class IdleModel {
 public:
  // Both must outlive this.
  IdleModel(const DeviceInfo& device, const AdmissionOptions& options)
      : device_(device), options_(options) {}

  struct Block {
    DeviceAllocationId memory;
    size_t pool = 0;
    TenantId tenant{0};
    BlockClass block_class;
    Bytes made_for;
    Bytes bytes;
    uint64_t age = 0;   // Of its release; a higher one is newer.
    bool aged = false;  // That is known.
  };
  // A request for blocks, with what they may lie on.
  struct Request {
    TenantId tenant{0};
    struct Want {
      Bytes size, exact;
      BlockClass block_class;  // But for the memory type:
      std::vector<uint32_t> types;
      bool transient = false, zeroed = false;
    };
    std::vector<Want> wants;
  };

  // Since the last Check, in their order.
  void Released(const Block& block) { released_.push_back(block); }
  void Reused(DeviceAllocationId memory) { reused_.push_back(memory); }
  // The operation was this; it has been decided on.
  void Asked(Request request) { asked_ = std::move(request); }

  struct Context {
    std::set<TenantId> tenants;  // With a session.
    bool tenants_changed = false;
    bool gave_up = false;              // An order that waited came to nothing.
    bool driver_asked = false;         // What it said may have had something evicted.
    std::set<uint32_t> ordered_heaps;  // On which anyone wanted memory.
    // All that is idle, oldest first, where that is known otherwise.
    std::optional<std::vector<Block>> all;
  };
  void Check(const DeviceStats& before, const DeviceStats& after, const Context& context);

  // How much was looked at.
  uint64_t fits_checked() const { return fits_checked_; }
  uint64_t evictions_checked() const { return evictions_checked_; }

 private:
  struct Evicted {
    Block block;
    bool pressure = false;
  };
  // Blocks go in the order of their keys.
  struct Key {
    bool has_session = false;
    uint64_t age = 0;
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  uint32_t HeapOf(const Block& block) const {
    return device_.memory_types[block.block_class.memory_type].heap;
  }
  bool Fits(const Block& block, const Request& request, const Request::Want& want) const;
  void CheckMiss(const DeviceStats& before, const DeviceStats& after) const;
  void CheckMissIn(size_t pool, const PoolStats& before, const PoolStats& after) const;
  void CheckBest(const Request::Want& want, const Block& taken) const;
  void TakeReused(const DeviceStats& before, const DeviceStats& after);
  void TakeHidden(const DeviceStats& before, const DeviceStats& after);
  void AddReleased();
  void SettlePool(size_t pool, const PoolStats& before, const PoolStats& after,
                  const Context& context);
  void CheckOrder(const DeviceStats& before, const DeviceStats& after, const Context& context);
  Key KeyOf(const Block& block, const Context& context) const;

  const DeviceInfo& device_;
  const AdmissionOptions& options_;
  std::vector<Block> idle_;  // Oldest first.
  bool complete_ = true;     // That is all there is; else nothing is known.
  std::vector<Evicted> evicted_;
  std::vector<Block> released_;
  std::vector<DeviceAllocationId> reused_;
  std::optional<Request> asked_;
  mutable uint64_t fits_checked_ = 0;
  uint64_t evictions_checked_ = 0;
};

}  // namespace heapbroker
#endif  // TESTS_MODEL_IDLE_MODEL_H_
