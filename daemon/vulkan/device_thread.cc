// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_thread.h"

#include <pthread.h>

#include <utility>

namespace heapbroker {

DeviceThreads::DeviceThreads()
    : allocating_thread_([this] { Run(kAllocating, "device-alloc"); }),
      freeing_thread_([this] { Run(kFreeing, "device-free"); }) {}

DeviceThreads::~DeviceThreads() { Stop(); }

void DeviceThreads::PostAllocation(DeviceJob job) { Post(kAllocating, std::move(job)); }

void DeviceThreads::PostFree(DeviceJob job) { Post(kFreeing, std::move(job)); }

void DeviceThreads::Post(Lane lane, DeviceJob job) {
  {
    MutexLock lock(mutex_);
    // The job is dropped outside the lock, by the end of its scope: what it holds
    // may do anything when it goes.
    if (stopped_) return;
    jobs_[lane].push_back(std::move(job));
    ++unfinished_;
  }
  wake_[lane].NotifyOne();
}

void DeviceThreads::Run(Lane lane, const char* thread_name) {
  pthread_setname_np(pthread_self(), thread_name);
  while (true) {
    DeviceJob job;
    {
      MutexLock lock(mutex_);
      while (jobs_[lane].empty() && !stopped_) wake_[lane].Wait(mutex_);
      if (jobs_[lane].empty()) return;
      job = std::move(jobs_[lane].front());
      jobs_[lane].pop_front();
    }
    std::move(job)();
    job = nullptr;  // What it held is let go before it counts as finished.
    MutexLock lock(mutex_);
    if (--unfinished_ == 0) all_finished_.NotifyAll();
  }
}

void DeviceThreads::Stop() {
  {
    MutexLock lock(mutex_);
    while (unfinished_ > 0) all_finished_.Wait(mutex_);
    stopped_ = true;
  }
  for (CondVar& wake : wake_) wake.NotifyAll();
  if (allocating_thread_.joinable()) allocating_thread_.join();
  if (freeing_thread_.joinable()) freeing_thread_.join();
}

}  // namespace heapbroker
