// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The one timer of a server.
#ifndef DAEMON_RPC_BEATS_H_
#define DAEMON_RPC_BEATS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>

#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "daemon/rpc/queue_event.h"
#include "grpcpp/alarm.h"
#include "grpcpp/completion_queue.h"

namespace heapbroker {

// Calls whoever wants it at intervals, on the completion queue's threads. One
// alarm for all, which is set for the next that is due: no thread waits for it,
// and nothing wakes up while nobody is here. Who is late, because the queue was
// busy, is called once for all that was missed.
//
// Thread-safe. No beat is called under the mutex; the alarm is set and cancelled
// under it, which calls nothing of ours.
class Beats final : private QueueEvent {
 public:
  using Beat = std::function<void()>;

  // Close() must come before the queue's shutdown, and the queue be empty before
  // this is destroyed.
  explicit Beats(grpc::CompletionQueue& queue) : queue_(queue) {}
  Beats(const Beats&) = delete;
  Beats& operator=(const Beats&) = delete;

  // Calls `beat` at every `interval`, for the first time after one. It must not
  // block. Nothing comes of it after Close().
  uint64_t Add(absl::Duration interval, Beat beat);
  // A beat that has begun may still be running when this returns.
  void Remove(uint64_t id);

  void Close();

 private:
  // The system's clock may be set back, and beats would stop for as long.
  using Clock = std::chrono::steady_clock;
  struct Listener {
    Clock::duration interval;
    Clock::time_point next;
    Beat beat;
  };

  void OnComplete(bool ok) override;
  // Sets the alarm for the earliest, if it is not set.
  void SetAlarm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  grpc::CompletionQueue& queue_;
  Mutex mutex_;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  bool set_ ABSL_GUARDED_BY(mutex_) = false;  // Until the queue has brought it back.
  Clock::time_point set_for_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_BEATS_H_
