// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Time for deadlines.
#ifndef COMMON_BASE_STEADY_TIME_H_
#define COMMON_BASE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/time.h"

namespace heapbroker {

// Since some moment before the process began, by a clock that nobody sets: a wait neither
// ends early nor goes on for hours because somebody corrects the time of day.
inline absl::Duration SteadyNow() {
  return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace heapbroker
#endif  // COMMON_BASE_STEADY_TIME_H_
