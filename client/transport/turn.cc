// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/turn.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/transport/cancel_hook.h"

namespace heapbroker {
namespace {

// Longer ones are several: a time far in the future is none for the C++ library.
constexpr absl::Duration kLongestWait = absl::Hours(24);

}  // namespace

Turn::~Turn() {
  // The C library waits for those who wait at the time, and in a forked child those are
  // the parent's, who never wake up here.
  if (process_.forked()) static_cast<void>(changed_.release());
}

absl::Status Turn::Take(const CallLimits& limits, absl::string_view others) {
  const CancelHook hook(limits.cancellation(), [this] {
    // Whoever has looked before it was cancelled is waiting by now.
    { MutexLock lock(mutex_); }
    changed_->NotifyAll();
  });
  MutexLock lock(mutex_);
  while (taken_) {
    if (limits.cancelled()) return absl::CancelledError(absl::StrCat("cancelled while ", others));
    if (limits.endless()) {
      changed_->Wait(mutex_);
      continue;
    }
    const absl::Duration left = std::min(limits.left(), kLongestWait);
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(
          absl::StrCat(others, " for ", absl::FormatDuration(limits.timeout())));
    }
    changed_->WaitFor(mutex_, absl::ToChronoNanoseconds(left));
  }
  taken_ = true;
  return absl::OkStatus();
}

void Turn::Give() {
  {
    MutexLock lock(mutex_);
    taken_ = false;
  }
  changed_->NotifyOne();
}

}  // namespace heapbroker
