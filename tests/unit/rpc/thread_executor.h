// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The device's two queues on real threads, one of which can be held up.
#ifndef TESTS_UNIT_RPC_THREAD_EXECUTOR_H_
#define TESTS_UNIT_RPC_THREAD_EXECUTOR_H_

#include <cstddef>
#include <deque>
#include <thread>

#include "common/base/mutex.h"
#include "daemon/core/device_executor.h"

namespace heapbroker {

// Runs what was posted before Stop() and drops what comes after it. Thread-safe.
class ThreadExecutor final : public DeviceExecutor {
 public:
  ThreadExecutor();
  ~ThreadExecutor() override;

  void PostAllocation(DeviceJob job) override;
  void PostFree(DeviceJob job) override;

  // A driver that hangs: allocations wait until Resume().
  void HoldAllocations();
  void Resume();
  // Allocations that were posted and have not begun.
  size_t waiting_allocations() const;

  void Stop();

 private:
  struct Queue {
    std::deque<DeviceJob> jobs;
    bool held = false;
  };

  void Post(Queue& queue, DeviceJob job);
  void Run(Queue& queue);

  mutable Mutex mutex_;
  CondVar changed_;
  Queue allocations_;  // Both guarded by mutex_.
  Queue frees_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread allocation_thread_;
  std::thread free_thread_;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_RPC_THREAD_EXECUTOR_H_
