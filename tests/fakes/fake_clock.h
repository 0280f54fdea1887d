// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// A clock that tests set.
#ifndef TESTS_FAKES_FAKE_CLOCK_H_
#define TESTS_FAKES_FAKE_CLOCK_H_

#include "absl/time/time.h"
#include "common/base/clock.h"

namespace heapbroker {

class FakeClock final : public Clock {
 public:
  absl::Time Now() const override { return now_; }
  void Advance(absl::Duration by) { now_ += by; }

 private:
  absl::Time now_ = absl::FromUnixSeconds(1000000000);
};

}  // namespace heapbroker
#endif  // TESTS_FAKES_FAKE_CLOCK_H_
