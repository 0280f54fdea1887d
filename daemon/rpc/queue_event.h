// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What a completion queue brings back.
#ifndef DAEMON_RPC_QUEUE_EVENT_H_
#define DAEMON_RPC_QUEUE_EVENT_H_

#include <atomic>

namespace heapbroker {

// Made by one thread, brought back to another. gRPC's queue itself orders the two, but a
// thread sanitizer does not see into a library that was built without it; a release and
// an acquire show it the same order.
class QueueEvent {
 public:
  // On one of the queue's threads. `ok` as CompletionQueue::Next says it. `this`
  // may be gone when it returns.
  //
  // Not virtual itself: finding out what to call reads the object.
  void Complete(bool ok) {
    (void)handed_over_.load(std::memory_order_acquire);
    OnComplete(ok);
  }

 protected:
  ~QueueEvent() = default;

  // For handing to gRPC, which brings it back to Complete(). It carries void pointers:
  // cast back to this class only.
  void* Tag() {
    handed_over_.store(true, std::memory_order_release);
    return this;
  }

 private:
  virtual void OnComplete(bool ok) = 0;

  std::atomic<bool> handed_over_{false};  // Its value means nothing.
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_QUEUE_EVENT_H_
