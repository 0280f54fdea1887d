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
  // Whether a job that is not over when something was decided ends there and is posted
  // anew, so that whoever runs the jobs can let other things happen in between, as they
  // did when they were recorded. Threads go on.
  virtual bool PausesAtDecisions() const { return false; }
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_DEVICE_EXECUTOR_H_
