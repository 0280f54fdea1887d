// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Where device calls run: never on the thread that decided them.
#ifndef DAEMON_CORE_DEVICE_EXECUTOR_H_
#define DAEMON_CORE_DEVICE_EXECUTOR_H_

#include "absl/functional/any_invocable.h"

namespace heapbroker {

using DeviceJob = absl::AnyInvocable<void() &&>;

// Two queues, each served by one thread in order, so that a free of twenty
// seconds delays no allocation. Thread-safe; posting never waits. Jobs posted
// after the executor was stopped are dropped, so it is stopped last.
class DeviceExecutor {
 public:
  virtual ~DeviceExecutor() = default;
  virtual void PostAllocation(DeviceJob job) = 0;
  virtual void PostFree(DeviceJob job) = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_DEVICE_EXECUTOR_H_
