// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One at a time, without a lock held meanwhile.
#ifndef CLIENT_TRANSPORT_TURN_H_
#define CLIENT_TRANSPORT_TURN_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/transport/call_limits.h"
#include "client/transport/process_mark.h"
#include "common/base/mutex.h"

namespace heapbroker {

// What must happen one after the other may take long (a system call, a driver's
// call), and no lock of ours is held over such a thing. So whoever wants to do
// it takes the turn, and the lock guards only whose turn it is. Thread-safe. A forked
// child may drop it, and nothing else.
class Turn {
 public:
  Turn() = default;
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Waits for the turn. `others` is for messages: what those who have it do.
  //   DEADLINE_EXCEEDED, CANCELLED  without the turn
  absl::Status Take(const CallLimits& limits, absl::string_view others);

  // Only by who has it.
  void Give();

 private:
  const ProcessMark process_{};
  Mutex mutex_;
  // By itself, so that it can be left alone.
  std::unique_ptr<CondVar> changed_ = std::make_unique<CondVar>();
  bool taken_ ABSL_GUARDED_BY(mutex_) = false;
};

// Has the turn from construction to destruction, unless it could not be had.
class TurnHolder {
 public:
  // Waits for as long as it takes.
  explicit TurnHolder(Turn& turn) : TurnHolder(turn, CallLimits(), "") {}
  TurnHolder(Turn& turn, const CallLimits& limits, absl::string_view others)
      : turn_(turn), status_(turn.Take(limits, others)) {}
  ~TurnHolder() {
    if (status_.ok()) turn_.Give();
  }
  TurnHolder(const TurnHolder&) = delete;
  TurnHolder& operator=(const TurnHolder&) = delete;

  // Of Turn::Take.
  const absl::Status& status() const { return status_; }

 private:
  Turn& turn_;
  const absl::Status status_;
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_TURN_H_
