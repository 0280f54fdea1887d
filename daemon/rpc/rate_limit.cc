// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/rate_limit.h"

#include <algorithm>

namespace heapbroker {

bool RateLimit::Take(absl::Time now) {
  full_at_ = std::clamp(full_at_, now, now + full_);
  if (full_at_ + interval_ > now + full_) return false;
  full_at_ += interval_;
  return true;
}

}  // namespace heapbroker
