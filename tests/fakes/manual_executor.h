// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// An executor whose jobs run when the test says so.
#ifndef TESTS_FAKES_MANUAL_EXECUTOR_H_
#define TESTS_FAKES_MANUAL_EXECUTOR_H_

#include <deque>
#include <utility>

#include "daemon/core/device_executor.h"

namespace heapbroker {

// For tests with one thread.
class ManualExecutor final : public DeviceExecutor {
 public:
  void PostAllocation(DeviceJob job) override { allocations_.push_back(std::move(job)); }
  void PostFree(DeviceJob job) override { frees_.push_back(std::move(job)); }

  size_t allocations() const { return allocations_.size(); }
  size_t frees() const { return frees_.size(); }

  // The oldest job of the queue; false where there is none.
  bool RunAllocation() { return RunOne(allocations_); }
  bool RunFree() { return RunOne(frees_); }
  // Until nothing is left, also of what the jobs themselves post.
  void RunAll() {
    while (RunFree() || RunAllocation()) {
    }
  }

 private:
  static bool RunOne(std::deque<DeviceJob>& jobs) {
    if (jobs.empty()) return false;
    DeviceJob job = std::move(jobs.front());
    jobs.pop_front();
    std::move(job)();
    return true;
  }

  std::deque<DeviceJob> allocations_;
  std::deque<DeviceJob> frees_;
};

}  // namespace heapbroker
#endif  // TESTS_FAKES_MANUAL_EXECUTOR_H_
