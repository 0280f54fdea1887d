// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The blocks that a pool keeps for reuse, findable by size and by age.
#ifndef DAEMON_CORE_IDLE_BLOCKS_H_
#define DAEMON_CORE_IDLE_BLOCKS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/ids.h"
#include "daemon/core/block.h"
#include "daemon/core/block_size.h"
#include "heapbroker/units.h"

namespace heapbroker {

// When a block became idle: a count that grows with every release on the
// device, so that ages compare across pools.
using ReleaseStamp = uint64_t;

struct IdleBlock {
  Block block;
  ReleaseStamp stamp;
};

// Every operation is O(log n) in the number of blocks, but Tenants(), which is
// that for each tenant.
// Bookkeeping only; guarded by its owner's mutex.
class IdleBlocks {
 public:
  // `idle.stamp` must not be in use.
  void Add(IdleBlock idle);

  // The smallest block of the tenant and class in `range`; among equals the one
  // released last, whose pages are likeliest warm.
  std::optional<IdleBlock> TakeBestFit(TenantId tenant, BlockClass block_class, SizeRange range);

  std::optional<ReleaseStamp> OldestStamp() const;
  std::optional<ReleaseStamp> OldestStamp(TenantId tenant) const;
  // `stamp` must be that of a block in here.
  Block Take(ReleaseStamp stamp);

  bool Holds(TenantId tenant, BlockClass block_class) const;
  // The tenants that have blocks in here, each once.
  std::set<TenantId> Tenants() const;

  size_t size() const { return by_stamp_.size(); }
  Bytes bytes() const { return bytes_; }
  Bytes largest() const;

 private:
  // Newest first among equal sizes: the stamp is stored as its complement.
  using Key = std::tuple<TenantId, BlockClass, Bytes, ReleaseStamp>;
  static Key KeyOf(const Block& block, ReleaseStamp stamp) {
    return {block.tenant, block.block_class, block.bytes(), ~stamp};
  }

  std::map<ReleaseStamp, Block> by_stamp_;
  std::set<Key> by_size_;
  std::set<std::pair<TenantId, ReleaseStamp>> by_tenant_;
  std::multiset<Bytes> sizes_;
  Bytes bytes_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_IDLE_BLOCKS_H_
