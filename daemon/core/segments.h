// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Named memory with contents that one session writes and others attach to.
#ifndef DAEMON_CORE_SEGMENTS_H_
#define DAEMON_CORE_SEGMENTS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "daemon/core/leases.h"
#include "daemon/core/requests.h"
#include "daemon/core/segment_shape.h"
#include "daemon/core/stats.h"

namespace heapbroker {

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

  // Of the device with that index.
  explicit Segments(uint32_t device_index) : device_index_(device_index) {}

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
    // Those that would not have waited for a segment that does not exist: where
    // there is no successor it is that now.
    std::vector<SegmentWaiter> not_found;
  };

  // What an attach without waiting is told where there is no segment.
  static absl::Status NotFound(const std::string& name);

  //   ALREADY_EXISTS  it is another one: see CheckSameShape
  //   NOT_FOUND       kAttach, and there is none
  absl::StatusOr<OpenResult> Open(TenantId tenant, const SegmentWaiter& opener);

  // The memory of an allocating segment; its writer is attached.
  SegmentView MemoryArrived(SegmentId segment, std::vector<LeasedBlock> blocks);
  // There is none; the writer is told elsewhere. Who waits next may try.
  Abandoned MemoryFailed(SegmentId segment);

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

  // The segment must exist.
  const std::string& NameOf(SegmentId segment) const { return by_id_.at(segment).second; }

  // Null unless the session fills or is attached to the block's segment.
  const Block* FindBlock(SessionId session, BlockId block) const;

  // What unused segments of a memory type could give up.
  struct Unused {
    Bytes bytes;
    size_t blocks = 0;
  };
  Unused UnusedOf(uint32_t memory_type) const;
  // When the least recently used one was used, as a count; unset where there is none.
  std::optional<uint64_t> OldestUnused(uint32_t memory_type) const;
  // Gives up the least recently used one. Empty where there is none.
  std::vector<LeasedBlock> EvictOne(uint32_t memory_type);

  uint32_t AttachmentsOf(SessionId session) const;
  struct Totals {
    uint32_t count = 0;
    Bytes allocated;
  };
  const Totals& totals() const { return totals_; }
  std::vector<SegmentStats> List() const;

 private:
  enum class State { kAbsent, kAllocating, kFilling, kSealed, kUnused };

  struct Segment {
    // Of the entry, whatever segment it stands for: what is done to several goes by this.
    // Never by their names, which a recording does not have.
    uint64_t number = 0;
    SegmentId id;
    State state = State::kAbsent;
    SegmentWaiter made_as;  // How its writer opened it: name, size, kind.
    SessionId writer;
    std::vector<LeasedBlock> blocks;
    std::optional<Checksum> checksum;
    std::map<SessionId, uint32_t> attached;  // How often each session opened it.
    std::deque<SegmentWaiter> waiters;
    uint64_t last_used = 0;  // Counts uses of all segments; set on becoming unused.

    uint32_t memory_type() const { return blocks.front().block.block_class.memory_type; }
  };
  struct UnusedSegments {
    Unused sum;
    std::map<uint64_t, Key> by_last_use;
  };
  using Table = std::map<Key, Segment>;

  Table::iterator Enter(const Key& key);
  void BecomeWriter(const Key& key, Segment& segment, const SegmentWaiter& waiter);
  SegmentView Attach(const Key& key, Segment& segment, SessionId session);
  static SegmentView View(const Segment& segment, SessionId session);
  void AddAttachment(const Key& key, Segment& segment, SessionId session);
  void RemoveAttachments(const Key& key, Segment& segment, SessionId session, uint32_t times);
  void AddWaiter(const Key& key, Segment& segment, const SegmentWaiter& waiter);
  using Waiters = std::deque<SegmentWaiter>;
  SegmentWaiter RemoveWaiter(const Key& key, Segment& segment, Waiters::iterator at);
  void BecomeUnused(const Key& key, Segment& segment);
  void EndUnused(Segment& segment);
  void EndSessionIn(const Key& key, SessionId session, SessionEnd& end);
  Abandoned Abandon(Table::iterator at);
  std::optional<Elected> Elect(Table::iterator at);
  Abandoned Detach(Table::iterator at, SessionId session, uint32_t times);
  absl::StatusOr<Table::iterator> FindAttached(SessionId session, SegmentId id);

  const uint32_t device_index_;
  Table table_;
  uint64_t last_number_ = 0;
  std::map<SegmentId, Key> by_id_;  // Of all that are not absent.
  std::map<BlockId, Key> by_block_;
  std::map<CallId, Key> by_call_;  // Of all waiters.
  // The segments that a session is attached to, each once, and those that it
  // waits for, once for each call: nothing of a session has to be searched for.
  std::map<SessionId, std::multiset<Key>> by_session_;
  std::map<SessionId, uint32_t> attachments_of_;  // How many each session is attached to.
  std::map<uint32_t, UnusedSegments> unused_;     // By memory type.
  Totals totals_;
  uint64_t last_id_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_SEGMENTS_H_
