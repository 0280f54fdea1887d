// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How a call notices that it was cancelled.
#ifndef CLIENT_TRANSPORT_CANCEL_HOOK_H_
#define CLIENT_TRANSPORT_CANCEL_HOOK_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "heapbroker/cancellation.h"

namespace heapbroker {

// From construction to destruction `hook` is called once, from the thread that
// cancels, if that happens; what it uses may go after the destructor, which waits
// for a call that lasts. So `hook` must not wait for the call that it ends.
//
// Not thread-safe, except for the hook.
class CancelHook {
 public:
  // `cancellation` may be null, and nothing ever happens. If it was cancelled
  // before, `hook` is not called.
  CancelHook(std::shared_ptr<Cancellation> cancellation, std::function<void()> hook);
  ~CancelHook();
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;

  bool cancelled() const { return cancellation_ != nullptr && cancellation_->cancelled(); }

 private:
  const std::shared_ptr<Cancellation> cancellation_;
  uint64_t number_ = 0;
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_CANCEL_HOOK_H_
