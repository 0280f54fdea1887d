// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What ends a call that waits: its time, or another thread.
#ifndef HEAPBROKER_CANCELLATION_H_
#define HEAPBROKER_CANCELLATION_H_

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "heapbroker/export.h"

namespace heapbroker {

// Ends calls from another thread: all that it was given to, those that have not
// begun yet included. It cannot be taken back, so what is to go on needs another
// one. Thread-safe.
class HEAPBROKER_EXPORT Cancellation {
 public:
  Cancellation();
  ~Cancellation();
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  // The calls end with CANCELLED, unless they have ended by themselves. Does not
  // wait for that.
  void Cancel();
  bool cancelled() const;

 private:
  friend class CancelHook;
  struct HEAPBROKER_LOCAL State;
  std::unique_ptr<State> state_;
};

// Of one call.
struct CallOptions {
  // From the call's beginning to its end, whatever it consists of. Unset:
  // ClientOptions::call_timeout. absl::InfiniteDuration: no limit.
  std::optional<absl::Duration> timeout{};
  // Ends the call early where it is set.
  std::shared_ptr<Cancellation> cancellation{};
};

}  // namespace heapbroker
#endif  // HEAPBROKER_CANCELLATION_H_
