// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Named memory with contents that one session writes and others attach to.
#ifndef DAEMON_CORE_SEGMENTS_H_
#define DAEMON_CORE_SEGMENTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "daemon/core/leases.h"
#include "daemon/core/requests.h"
#include "daemon/core/stats.h"

namespace heapbroker {

// A session that waits for a segment.
struct SegmentWaiter {
  SessionId session;
  CallId call;
  OpenSegmentRequest request;
};

// The life of every segment, apart from the memory: who writes, who waits, who
// is attached.
//
//             first kCreateOrAttach                 memory came       Seal
//   absent ─────────────────────────▶ allocating ───────────────▶ filling ──▶ sealed ◀─┐
//     ▲  ▲                                 │                          │          │ last  │
//     │  └─────────────────────────────────┴──────────────────────────┘          │Close  │attach
//     │     no memory; the writer closed or its session ended                    ▼       │
//     └──────────────────────────────────────────────────────────────────────  unused ──┘
//                                   evicted
//
// An absent one exists only while sessions wait for it. Each time a session
// becomes writer the segment has a new id and new blocks: what an abandoned
// writer left behind, or still writes, is never seen.
//
// Bookkeeping only; guarded by its owner's mutex.
class Segments {
 public:
  using Key = std::pair<TenantId, std::string>;

  // What an Open leads to. Become: the session is the writer-to-be and memory has
  // to be found (MemoryArrived or MemoryFailed follows).
  struct Become {
    SegmentId segment;
  };
  struct Wait {};
  using OpenResult = std::variant<Become, Wait, SegmentView>;

  // An answer for a session that waited.
  struct Attached {
    SegmentWaiter waiter;
    SegmentView view;
  };
  // A waiter that is now the writer-to-be of `segment`.
  struct Elected {
    SegmentWaiter waiter;
    SegmentId segment;
    TenantId tenant;
  };
  // What is left of a segment whose writer is gone, or which was evicted.
  struct Abandoned {
    std::vector<LeasedBlock> blocks;
    std::optional<Elected> successor;
  };

  //   ALREADY_EXISTS  another size or kind; tells both
  //   NOT_FOUND       kAttach, and there is none
  absl::StatusOr<OpenResult> Open(TenantId tenant, const SegmentWaiter& opener);

  // The memory of an allocating segment; its writer is attached.
  SegmentView MemoryArrived(SegmentId segment, std::vector<LeasedBlock> blocks);
  // There is none; the writer is told elsewhere. Who waits next may try.
  std::optional<Elected> MemoryFailed(SegmentId segment);

  // All who waited are attached now.
  absl::StatusOr<std::vector<Attached>> Seal(SessionId session, SegmentId segment,
                                             Checksum checksum);
  absl::StatusOr<Abandoned> Close(SessionId session, SegmentId segment);

  // Ends every attachment and every wait of the session. Its own waiting calls
  // come back in `cancelled`.
  struct SessionEnd {
    std::vector<Abandoned> abandoned;
    std::vector<SegmentWaiter> cancelled;
  };
  SessionEnd EndSession(SessionId session);

  // The waiter of this call, if it still waits; it does not any more.
  std::optional<SegmentWaiter> CancelWait(SessionId session, CallId call);

  // Null unless the session fills or is attached to the block's segment.
  const Block* FindBlock(SessionId session, BlockId block) const;

  // Unused segments can give up their blocks on a heap; least recently used first.
  struct Unused {
    Bytes bytes;
    size_t blocks = 0;
  };
  Unused UnusedOf(uint32_t memory_type) const;
  std::vector<LeasedBlock> EvictOne(uint32_t memory_type);

  uint32_t AttachmentsOf(SessionId session) const;
  std::vector<SegmentStats> List() const;

 private:
  enum class State { kAbsent, kAllocating, kFilling, kSealed, kUnused };

  struct Segment {
    SegmentId id;
    State state = State::kAbsent;
    OpenSegmentRequest made_as;  // The writer's: name, size, kind.
    SessionId writer;
    std::vector<LeasedBlock> blocks;
    std::optional<Checksum> checksum;
    std::map<SessionId, uint32_t> attached;  // How often each session opened it.
    std::deque<SegmentWaiter> waiters;
    uint64_t last_used = 0;  // Counts uses of all segments; set on becoming unused.
  };
  using Table = std::map<Key, Segment>;

  void BecomeWriter(const Key& key, Segment& segment, const SegmentWaiter& waiter);
  SegmentView Attach(Segment& segment, SessionId session);
  static SegmentView View(const Segment& segment, SessionId session);
  Abandoned Abandon(Table::iterator at);
  std::optional<Elected> ElectOrForget(Table::iterator at);
  Abandoned Detach(Table::iterator at, SessionId session, uint32_t times);
  absl::StatusOr<Table::iterator> FindAttached(SessionId session, SegmentId id);

  Table table_;
  std::map<SegmentId, Key> by_id_;  // Of all that are not absent.
  std::map<BlockId, Key> by_block_;
  uint64_t last_id_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_SEGMENTS_H_
