// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What many want to know and is dear to find out.
#ifndef DAEMON_RPC_RECENT_VALUE_H_
#define DAEMON_RPC_RECENT_VALUE_H_

#include <functional>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace heapbroker {

// A value that is made when it is asked for, and then serves all who ask until it is
// `max_age` old. So what it costs does not grow with those who ask. Thread-safe; nothing
// is made under the mutex, so threads that ask for the first one at the same moment may
// each make one.
template <typename T>
class RecentValue {
 public:
  // `make` runs on the thread that asks, on several at once. `clock` must outlive this.
  RecentValue(const Clock& clock, absl::Duration max_age, std::function<T()> make)
      : clock_(clock), max_age_(max_age), make_(std::move(make)) {}

  T Get() {
    const absl::Time now = clock_.Now();
    if (std::optional<T> recent = Recent(now)) return *std::move(recent);
    T made = make_();
    MutexLock lock(mutex_);
    value_ = made;
    made_at_ = now;
    return made;
  }

 private:
  // A value of the future is one from before the clock was set back.
  std::optional<T> Recent(absl::Time now) {
    MutexLock lock(mutex_);
    const bool usable = now >= made_at_ && now - made_at_ < max_age_;
    return usable ? value_ : std::nullopt;
  }

  const Clock& clock_;
  const absl::Duration max_age_;
  const std::function<T()> make_;
  Mutex mutex_;
  std::optional<T> value_ ABSL_GUARDED_BY(mutex_);
  absl::Time made_at_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_RECENT_VALUE_H_
