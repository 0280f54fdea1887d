// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the daemon tells a session without being asked, and what the session tells
// the daemon that it could do without.
#ifndef HEAPBROKER_MEMORY_WATCH_H_
#define HEAPBROKER_MEMORY_WATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "heapbroker/client.h"
#include "heapbroker/export.h"
#include "heapbroker/types.h"

namespace heapbroker {

// Others need memory: release what is idle on this heap, up to `bytes`. Ignoring
// it is no offence.
struct GiveBackRequest {
  uint32_t device_index = 0;  // Into Client::devices().
  uint32_t heap_index = 0;    // Into its heaps.
  Bytes bytes{};
  absl::Duration time{};  // After this the daemon does not wait for it any longer.
};

// A segment of this user is complete, whoever wrote it.
struct SegmentSealed {
  uint64_t segment_id = 0;
  std::string name{};
  uint32_t device_index = 0;
};

// Leased memory that the client has no use for at the moment.
struct IdleMemory {
  uint32_t device_index = 0;
  uint32_t heap_index = 0;
  Bytes bytes{};

  friend bool operator==(const IdleMemory&, const IdleMemory&) = default;
};

// Called one at a time, on a thread of the watch. What takes long there delays
// what follows. Any of them may be empty.
struct WatchHandlers {
  std::function<void(const GiveBackRequest&)> on_give_back{};
  std::function<void(const SegmentSealed&)> on_segment_sealed{};
  // The session has ended, and all its leases with it, so nothing is idle any more.
  // The watch goes on with the next session. For those who do not own the Client, whose
  // SessionHandlers tell which leases they were.
  std::function<void(const absl::Status&)> on_session_lost{};
  // The last call, unless the MemoryWatch is destroyed first: nothing more will be
  // told.
  //   ABORTED              another watch of this session took its place
  //   FAILED_PRECONDITION  the session is an observer's
  //   UNAVAILABLE          the session has ended, and there will be no other: see
  //                        ReconnectOptions::enabled
  //   UNIMPLEMENTED        the daemon is too old for this
  std::function<void(const absl::Status&)> on_end{};
};

// From Client::Watch until it is destroyed, over as many sessions as the Client has
// meanwhile. Two threads wait in it, which cost nothing while nothing happens. Keeps
// the session open, as a copy of the Client would. Thread-safe.
class HEAPBROKER_EXPORT MemoryWatch {
 public:
  // For Client.
  static absl::StatusOr<std::unique_ptr<MemoryWatch>> Start(std::shared_ptr<SessionKeeper> keeper,
                                                            WatchHandlers handlers);

  // Ends the watch. A handler that runs at that time is waited for, and none is
  // called afterwards; in a handler, which may destroy the watch as well, it
  // returns at once. In a forked child it does nothing.
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // All that is idle now; heaps that are not named have nothing. The daemon
  // believes up to what the session leases there, and asks the sessions with the
  // most first. Returns at once: reports go out at most ten times a second, of
  // those in between only the last, and none that says what the one before it
  // said. A report that was made before on_session_lost is dropped with the session.
  // Nothing happens once the watch has ended.
  void ReportIdle(std::vector<IdleMemory> idle);

 private:
  struct HEAPBROKER_LOCAL State;
  explicit MemoryWatch(std::shared_ptr<State> state);

  std::shared_ptr<State> state_;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_MEMORY_WATCH_H_
