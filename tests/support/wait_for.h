// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Waiting for what another process or thread will do, instead of sleeping.
#ifndef TESTS_SUPPORT_WAIT_FOR_H_
#define TESTS_SUPPORT_WAIT_FOR_H_

#include <functional>

#include "absl/time/time.h"

namespace heapbroker {

// Asks every few milliseconds. True as soon as `condition` is; false if it is
// not when `limit` has passed. Asks at least once, and once more at the end, so
// a slow machine does not fail a test whose condition holds.
bool WaitFor(const std::function<bool()>& condition, absl::Duration limit = absl::Seconds(10));

}  // namespace heapbroker
#endif  // TESTS_SUPPORT_WAIT_FOR_H_
