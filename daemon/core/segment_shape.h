// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What a segment is, apart from its name: size, memory and handle type.
#ifndef DAEMON_CORE_SEGMENT_SHAPE_H_
#define DAEMON_CORE_SEGMENT_SHAPE_H_

#include <memory>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "daemon/core/placement.h"
#include "daemon/core/requests.h"

namespace heapbroker {

// A session that opens a segment, and may have to wait for it.
struct SegmentWaiter {
  SessionId session;
  CallId call;
  OpenSegmentRequest request;
  // Where the memory may lie that it asks for. Null but for kCreateOrAttach.
  std::shared_ptr<const Placement> placement = nullptr;
};

// Whether `wanted` asks for what the segment of `writer` is. Without a size it takes
// whatever there is, and without a handle type either of them. Memory is the same by
// whatever names it is asked for in, as long as they name the same types in the same
// order.
//   ALREADY_EXISTS  another size, memory or handle type; tells both
absl::Status CheckSameShape(const SegmentWaiter& wanted, const SegmentWaiter& writer);

}  // namespace heapbroker
#endif  // DAEMON_CORE_SEGMENT_SHAPE_H_
