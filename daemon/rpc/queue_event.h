// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What a completion queue brings back.
#ifndef DAEMON_RPC_QUEUE_EVENT_H_
#define DAEMON_RPC_QUEUE_EVENT_H_

namespace heapbroker {

// Its address is the tag. gRPC carries void pointers: cast to and from this class
// only.
class QueueEvent {
 public:
  // On one of the queue's threads. `ok` as CompletionQueue::Next says it. `this`
  // may be gone when it returns.
  virtual void Complete(bool ok) = 0;

 protected:
  ~QueueEvent() = default;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_QUEUE_EVENT_H_
