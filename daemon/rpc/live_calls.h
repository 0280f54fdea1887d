// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which calls gRPC still has a hold of, so that a server can end without losing
// one or asking a closed queue for another.
#ifndef DAEMON_RPC_LIVE_CALLS_H_
#define DAEMON_RPC_LIVE_CALLS_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "daemon/rpc/caller.h"

namespace heapbroker {

class Call;

// UNAVAILABLE: what every call ends with when the server shuts down.
absl::Status ShuttingDown();

// How many calls there may be at a time. gRPC's own bound is one for each connection,
// and binds only a client that acknowledges it.
struct CallLimits {
  // Of sessions and others together; administrators have `reserved` more.
  size_t all = 4096;
  // Of those who show no session, which anyone may be: no more than these, so that
  // they cannot take what sessions need.
  size_t without_session = 1024;
  size_t reserved = 64;
};

// The calls of one server, from when the queue is asked for one until its last
// tag has come back: also those that are refused or over, as long as their clients do
// not read that. Thread-safe; nothing is called under its mutex.
class LiveCalls {
 public:
  // `standing` says of a caller what it has shown; on any thread.
  LiveCalls(const CallLimits& limits, std::function<Standing(const Caller&)> standing)
      : limits_(limits), standing_(std::move(standing)) {}

  // The queue is about to be asked for `call`. False after Close(): do not ask.
  bool Add(const std::shared_ptr<Call>& call);
  // A client has made the call. Where it is not OK, the call must be ended with it.
  //   UNAVAILABLE         it came after Close()
  //   RESOURCE_EXHAUSTED  there are as many as there may be
  absl::Status Arrive(Call* call, const Caller& caller);
  // The last tag of `call` is back, and it holds nothing of gRPC's any more.
  void Remove(Call* call);

  // No more calls from here on.
  void Close();
  // Those that clients have made and that still live.
  std::vector<std::shared_ptr<Call>> Arrived() const;

  // False when it was `end` before the last call that arrived was removed.
  bool WaitUntilNoneArrived(std::chrono::steady_clock::time_point end);
  void WaitUntilEmpty();

 private:
  struct Entry {
    std::weak_ptr<Call> call;
    bool arrived = false;
    // Whose it is counted as; empty where it was refused.
    std::optional<Standing> counted_as = std::nullopt;
  };

  absl::Status CheckRoomFor(Standing caller) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CallLimits limits_;
  const std::function<Standing(const Caller&)> standing_;
  mutable Mutex mutex_;
  CondVar removed_;
  absl::flat_hash_map<Call*, Entry> calls_ ABSL_GUARDED_BY(mutex_);
  size_t arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of these, those that were not refused: whoever is refused and does not read it
  // takes nothing from the others.
  size_t counted_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t without_session_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_LIVE_CALLS_H_
