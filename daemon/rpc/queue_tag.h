// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a completion queue carries: one operation of one call.
#ifndef DAEMON_RPC_QUEUE_TAG_H_
#define DAEMON_RPC_QUEUE_TAG_H_

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
    return Tag();
  }

  // gRPC will not bring it back after all.
  void Disarm() { call_.reset(); }

 private:
  void OnComplete(bool ok) override {
    const std::shared_ptr<Call> call = std::exchange(call_, nullptr);
    ((*call).*handler_)(ok);
  }

  const Handler handler_;
  std::shared_ptr<Call> call_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_QUEUE_TAG_H_
