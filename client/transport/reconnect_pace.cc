// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/reconnect_pace.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdint>

#include "common/base/steady_time.h"

namespace heapbroker {

absl::Duration RealReconnectPace::Now() { return SteadyNow(); }

// From the kernel: clients that were forked off each other, or started at the same
// time, have nothing in common then.
double RealReconnectPace::Chance() {
  uint32_t bits = 0;
  // Fails only where there is no such call; then there is no chance.
  if (getrandom(&bits, sizeof bits, 0) != sizeof bits) return 0;
  return bits / 4294967296.0;
}

void RealReconnectPace::Pause(absl::Duration delay) {
  const absl::Duration end = SteadyNow() + delay;
  MutexLock lock(mutex_);
  while (!interrupted_) {
    // A delay far in the future is none for the C++ library.
    const absl::Duration left = std::min(end - SteadyNow(), absl::Hours(24));
    if (left <= absl::ZeroDuration()) return;
    changed_.WaitFor(mutex_, absl::ToChronoNanoseconds(left));
  }
}

void RealReconnectPace::Interrupt() {
  {
    MutexLock lock(mutex_);
    interrupted_ = true;
  }
  changed_.NotifyAll();
}

}  // namespace heapbroker
