// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What the recorded device needs and how long it takes, learned from a recording.
#ifndef DAEMON_TRACE_SIZE_MODEL_H_
#define DAEMON_TRACE_SIZE_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "daemon/core/block_class.h"
#include "heapbroker/units.h"

namespace heapbroker {

// How much a driver pads: exactly what it was seen to do, and for other sizes the
// smallest alignment that, with one addition, explains all that was seen. Not
// thread-safe.
class SizeModel {
 public:
  void Learn(const BlockClass& block_class, Bytes size, Bytes required);
  // At least `size`; Max where that wraps.
  Bytes Required(const BlockClass& block_class, Bytes size) const;

 private:
  struct Padding {
    Bytes alignment = Bytes(1);
    Bytes addition;
  };
  Padding Explain() const;

  std::map<std::pair<BlockClass, Bytes>, Bytes> seen_;
  mutable std::optional<Padding> padding_;  // Of what was seen; unset: to be found.
};

// How long a driver takes for allocations: a time for each and a time for each
// byte, by least squares over all jobs. Not thread-safe.
class TimeModel {
 public:
  // A job of so many allocations.
  void LearnAllocations(uint64_t allocations, double bytes, absl::Duration took);
  void LearnFree(absl::Duration took);

  // Something was recorded that took time.
  bool known() const { return jobs_ > 0; }
  // For that many allocations and as many frees.
  absl::Duration For(uint64_t blocks, double bytes) const;

 private:
  // Sums over jobs; n allocations, b bytes, t seconds.
  double nn_ = 0, nb_ = 0, bb_ = 0, nt_ = 0, bt_ = 0;
  uint64_t jobs_ = 0;
  double free_seconds_ = 0;
  uint64_t frees_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_TRACE_SIZE_MODEL_H_
