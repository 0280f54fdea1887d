// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which calls gRPC still has a hold of, so that a server can end without losing
// one or asking a closed queue for another.
#ifndef DAEMON_RPC_LIVE_CALLS_H_
#define DAEMON_RPC_LIVE_CALLS_H_

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/base/mutex.h"

namespace heapbroker {

class Call;

// The calls of one server, from when the queue is asked for one until its last
// tag has come back. Thread-safe; nothing is called under its mutex.
class LiveCalls {
 public:
  // The queue is about to be asked for `call`. False after Close(): do not ask.
  bool Add(const std::shared_ptr<Call>& call);
  // A client has made the call. False after Close(): refuse it.
  bool Arrive(Call* call);
  // The last tag of `call` is back, and it holds nothing of gRPC's any more.
  void Remove(Call* call);

  // No more calls from here on.
  void Close();
  // Those that clients have made and that still live.
  std::vector<std::shared_ptr<Call>> Arrived() const;

  // False when `timeout` passed before the last call that arrived was removed.
  bool WaitUntilNoneArrived(std::chrono::milliseconds timeout);
  void WaitUntilEmpty();

 private:
  struct Entry {
    std::weak_ptr<Call> call;
    bool arrived = false;
  };

  mutable Mutex mutex_;
  CondVar removed_;
  absl::flat_hash_map<Call*, Entry> calls_ ABSL_GUARDED_BY(mutex_);
  size_t arrived_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_LIVE_CALLS_H_
