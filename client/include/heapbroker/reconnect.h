// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// When the daemon is lost: what is told, and how the library connects again.
#ifndef HEAPBROKER_RECONNECT_H_
#define HEAPBROKER_RECONNECT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "heapbroker/types.h"

namespace heapbroker {

// How often a lost daemon is looked for. Each failure doubles the delay before the
// next attempt, from `initial_delay` to `max_delay`. Only a session that has lasted
// for `max_delay` puts it back, so that nobody storms a daemon that ends as soon as
// it has begun.
struct ReconnectOptions {
  // Otherwise a lost session is the Client's end, and all its calls are UNAVAILABLE.
  bool enabled = true;
  absl::Duration initial_delay = absl::Milliseconds(100);  // More than zero.
  absl::Duration max_delay = absl::Seconds(5);             // At least `initial_delay`.
  // From 0 to 1: the part of each delay that is left to chance, so that the clients
  // of a machine do not come all at once. A delay d lasts from (1 - jitter) * d to d.
  double jitter = 0.5;
};

// An attachment that ended with its session.
struct LostSegment {
  uint64_t segment_id = 0;
  std::string name{};
  Bytes size{};
  uint32_t device_index = 0;
  bool writer = false;  // Had not sealed it yet.
};

// A session that has ended, and all that it held then. What was imported of it stays
// valid, but nobody accounts for it any more: give it up as soon as its contents are
// not needed. Leases and Segments of it are to be dropped; that makes no call.
struct LostSession {
  uint64_t session_id = 0;
  // MemoryBlock::connection_number of its blocks.
  uint64_t connection_number = 0;
  std::vector<ImportFacts> leases{};  // In no particular order.
  std::vector<LostSegment> segments{};
};

struct NewSession {
  uint64_t session_id = 0;
  // The daemon has the same devices as before, with the same figures. Otherwise look
  // at Client::devices() before the next request: an index may mean another one.
  bool same_devices = false;
};

// Called one at a time, on a thread of the library that does nothing else; what takes
// long there delays the next session. They may call the Client, and drop it. Any of
// them may be empty.
//
// With any of them that thread is there from the beginning and sleeps in the kernel,
// so that a loss is told at once. Without, it is there only while there is no session,
// and a loss is noticed by the first call after it, or by a MemoryWatch.
struct SessionHandlers {
  // Before the first attempt to connect again.
  std::function<void(const LostSession&)> on_lost{};
  std::function<void(const NewSession&)> on_reconnected{};
};

}  // namespace heapbroker
#endif  // HEAPBROKER_RECONNECT_H_
