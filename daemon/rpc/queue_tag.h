// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a completion queue carries: one operation of one call.
#ifndef DAEMON_RPC_QUEUE_TAG_H_
#define DAEMON_RPC_QUEUE_TAG_H_

#include <atomic>
#include <memory>
#include <utility>

#include "daemon/rpc/queue_event.h"

namespace heapbroker {

class Call;

// A member of its call. While the queue has it, it keeps the call alive: that is
// the reference that each operation holds. Not thread-safe: a tag is either with
// its call or with the queue.
class QueueTag final : public QueueEvent {
 public:
  using Handler = void (Call::*)(bool ok);

  explicit QueueTag(Handler handler) : handler_(handler) {}

  // For handing to gRPC, which brings it back to Complete() exactly once.
  void* Arm(std::shared_ptr<Call> call) {
    call_ = std::move(call);
    armed_.store(true, std::memory_order_release);
    return static_cast<QueueEvent*>(this);
  }

  // gRPC will not bring it back after all.
  void Disarm() { call_.reset(); }

  void Complete(bool ok) override {
    (void)armed_.load(std::memory_order_acquire);
    const std::shared_ptr<Call> call = std::exchange(call_, nullptr);
    ((*call).*handler_)(ok);
  }

 private:
  const Handler handler_;
  std::shared_ptr<Call> call_;
  // Never looked at. gRPC's queue itself orders Arm() before Complete() on
  // another thread, but a thread sanitizer does not see into a library that was
  // built without it; this release and acquire show it the same order.
  std::atomic<bool> armed_{false};
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_QUEUE_TAG_H_
