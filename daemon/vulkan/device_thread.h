// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The two threads that make a device's calls.
#ifndef DAEMON_VULKAN_DEVICE_THREAD_H_
#define DAEMON_VULKAN_DEVICE_THREAD_H_

#include <array>
#include <cstddef>
#include <deque>
#include <thread>

#include "common/base/mutex.h"
#include "daemon/core/device_executor.h"

namespace heapbroker {

// One thread allocates, one frees; each sleeps until it has a job, so an idle
// device wakes nobody.
//
// Thread-safe, except that Stop and the destructor are called by one thread,
// which is none of the two.
class DeviceThreads final : public DeviceExecutor {
 public:
  DeviceThreads();
  ~DeviceThreads() override;  // Stops.
  DeviceThreads(const DeviceThreads&) = delete;
  DeviceThreads& operator=(const DeviceThreads&) = delete;

  void PostAllocation(DeviceJob job) override;
  void PostFree(DeviceJob job) override;

  // Runs everything that was posted, and what those jobs post in turn (a freed
  // block lets a waiting request allocate), then ends the threads. Takes as long
  // as the driver does. Jobs posted later are dropped. Stopping twice is
  // harmless.
  void Stop();

 private:
  enum Lane : size_t { kAllocating, kFreeing };
  static constexpr size_t kLanes = 2;

  void Post(Lane lane, DeviceJob job);
  void Run(Lane lane, const char* thread_name);

  // One mutex for both lanes, held for the length of a queue operation, so that
  // "both are through" is one question.
  Mutex mutex_;
  std::array<std::deque<DeviceJob>, kLanes> jobs_ ABSL_GUARDED_BY(mutex_);
  size_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;  // Queued or running, of both.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::array<CondVar, kLanes> wake_;  // A job arrived in the lane, or the end.
  CondVar all_finished_;
  // Last, so that the threads find everything above made.
  std::thread allocating_thread_;
  std::thread freeing_thread_;
};

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_DEVICE_THREAD_H_
