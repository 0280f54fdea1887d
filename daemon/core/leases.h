// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Which session holds which blocks.
#ifndef DAEMON_CORE_LEASES_H_
#define DAEMON_CORE_LEASES_H_

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/block.h"
#include "daemon/core/stats.h"
#include "heapbroker/units.h"

namespace heapbroker {

// A block in a session's hands.
struct LeasedBlock {
  Block block;
  Bytes size;              // As the session asked.
  RequestId request = {};  // Of the Allocate that it came with.
  absl::Time since = {};
};

// Bookkeeping only; guarded by its owner's mutex.
class Leases {
 public:
  void AddHolder(SessionId session, TenantId tenant);
  // Returns what the holder still had. Empty for one that is unknown.
  std::vector<LeasedBlock> RemoveHolder(SessionId session);

  // Unset where the session has ended or never was.
  std::optional<TenantId> TenantOf(SessionId session) const;
  bool HasHolder(TenantId tenant) const { return holders_of_.contains(tenant); }
  std::vector<SessionId> HoldersOf(TenantId tenant) const;

  // `session` must be a holder.
  void Add(SessionId session, LeasedBlock leased);
  // Null where this session does not lease that block.
  const LeasedBlock* Find(SessionId session, BlockId block) const;
  // The session must lease the block.
  LeasedBlock Take(SessionId session, BlockId block);

  HolderStats Holdings(SessionId session) const;
  // What the session leases of one memory type.
  Bytes HeldOf(SessionId session, uint32_t memory_type) const;
  // All leases, ordered by block id, those above `after` only, at most `limit`.
  using Visitor = absl::FunctionRef<void(SessionId, TenantId, const LeasedBlock&)>;
  void List(BlockId after, size_t limit, Visitor visit) const;

 private:
  struct Holder {
    TenantId tenant;
    absl::btree_map<BlockId, LeasedBlock> blocks;
    Bytes bytes;  // Of `blocks`.
    std::map<uint32_t, Bytes> by_type;
  };
  void Count(Holder& holder, const Block& block);
  void Uncount(Holder& holder, const Block& block);

  std::map<SessionId, Holder> holders_;
  absl::btree_map<BlockId, SessionId> holder_of_;
  std::map<TenantId, std::set<SessionId>> holders_of_;  // Never empty sets.
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_LEASES_H_
