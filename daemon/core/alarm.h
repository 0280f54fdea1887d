// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The core's one way to be called when time has passed.
#ifndef DAEMON_CORE_ALARM_H_
#define DAEMON_CORE_ALARM_H_

#include "absl/time/time.h"

namespace heapbroker {

// Whoever implements it calls DeviceBroker::Tick at that time or soon after, from
// a thread of its own. One time is remembered, the earliest; it is forgotten when
// Tick is called, which sets the next. Thread-safe, does not block; called with no
// lock held.
class Alarm {
 public:
  virtual ~Alarm() = default;
  virtual void WakeBy(absl::Time time) = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_ALARM_H_
