// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Which session holds which blocks.
#ifndef DAEMON_CORE_LEASES_H_
#define DAEMON_CORE_LEASES_H_

#include <map>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "daemon/core/block.h"
#include "daemon/core/stats.h"
#include "heapbroker/units.h"

namespace heapbroker {

// A block in a session's hands.
struct LeasedBlock {
  Block block;
  Bytes size;  // As the session asked.
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

  // `session` must be a holder.
  void Add(SessionId session, LeasedBlock leased);
  // Null where this session does not lease that block.
  const LeasedBlock* Find(SessionId session, BlockId block) const;
  // The session must lease the block.
  LeasedBlock Take(SessionId session, BlockId block);

  HolderStats Holdings(SessionId session) const;

 private:
  struct Holder {
    TenantId tenant;
    std::map<BlockId, LeasedBlock> blocks;
    Bytes bytes;  // Of `blocks`.
  };
  std::map<SessionId, Holder> holders_;
  std::map<TenantId, size_t> holders_of_;  // How many holders each tenant has; never 0.
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_LEASES_H_
