// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Watches what happens on a device, and changes nothing of it.
#ifndef DAEMON_CORE_DEVICE_OBSERVER_H_
#define DAEMON_CORE_DEVICE_OBSERVER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/refusal.h"
#include "daemon/core/requests.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Each is one turn of the device's ledger, which is the same for the same turns:
// whoever repeats them on another ledger gets the same decisions.
struct SessionAdded {
  SessionId session;
  TenantId tenant{0};
};
struct SessionEnded {
  SessionId session;
};
struct AllocateAsked {
  SessionId session;
  CallId call;
  AllocateRequest request;
};
struct BlocksReleased {
  SessionId session;
  std::vector<BlockId> blocks;
};
struct RequestUndone {
  SessionId session;
  RequestId request;
};
struct SegmentOpened {
  SessionId session;
  CallId call;
  OpenSegmentRequest request;
};
struct SegmentWasSealed {
  SessionId session;
  SegmentId segment;
};
struct SegmentClosed {
  SessionId session;
  SegmentId segment;
};
struct CallCancelled {
  SessionId session;
  CallId call;
};
struct IdleReported {
  SessionId session;
  std::vector<IdleReport> reports;
};
struct HeapsRead {
  std::vector<HeapReport> reports;
};
struct Trimmed {
  TrimRequest request;
};
struct Ticked {};
// What the device said to one question: how large an allocation must be, to make one,
// to clear one.
struct DeviceAnswer {
  Bytes required;  // The first kind's, where that went well.
  absl::StatusCode code = absl::StatusCode::kOk;
  std::optional<LimitKind> limit = std::nullopt;  // Where the error named one.

  friend bool operator==(const DeviceAnswer&, const DeviceAnswer&) = default;
};
// A job of the allocating thread, up to the next thing to decide: whether what the
// device needs for a block can be had, or what becomes of the order.
struct JobFilled {
  std::vector<DeviceAnswer> answers;  // In the order of the questions.
  absl::Duration took;
  bool over = false;  // Nothing of the job comes after this.
};
// A job of the freeing thread.
struct JobFreed {
  BlockId block;
  absl::Duration took;
};
// What a call got, at once or later: blocks, or also a segment, or an error.
struct CallAnswered {
  CallId call;
  std::vector<BlockId> blocks;
  SegmentId segment;
  absl::StatusCode code = absl::StatusCode::kOk;
};

using Turn =
    std::variant<SessionAdded, SessionEnded, AllocateAsked, BlocksReleased, RequestUndone,
                 SegmentOpened, SegmentWasSealed, SegmentClosed, CallCancelled, IdleReported,
                 HeapsRead, Trimmed, Ticked, JobFilled, JobFreed, CallAnswered>;

struct RecordedTurn {
  uint64_t sequence = 0;  // Counted up under the ledger's mutex: the order of the turns.
  absl::Time time;
  Turn turn;
};

// Called with no lock held and from any thread, so that turns can arrive in
// another order than they happened: `sequence` tells. Must not block.
class DeviceObserver {
 public:
  virtual ~DeviceObserver() = default;
  // Only where WantsTurns, which is asked once.
  virtual bool WantsTurns() const = 0;
  virtual void OnTurn(RecordedTurn turn) = 0;
  // Something that whoever runs the daemon should know; each once.
  virtual void OnWarning(std::string text) = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_DEVICE_OBSERVER_H_
