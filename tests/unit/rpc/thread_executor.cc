// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rpc/thread_executor.h"

#include <utility>

namespace heapbroker {

ThreadExecutor::ThreadExecutor()
    : allocation_thread_([this] { Run(allocations_); }), free_thread_([this] { Run(frees_); }) {}

ThreadExecutor::~ThreadExecutor() { Stop(); }

void ThreadExecutor::PostAllocation(DeviceJob job) { Post(allocations_, std::move(job)); }

void ThreadExecutor::PostFree(DeviceJob job) { Post(frees_, std::move(job)); }

void ThreadExecutor::Post(Queue& queue, DeviceJob job) {
  MutexLock lock(mutex_);
  if (stopped_) return;
  queue.jobs.push_back(std::move(job));
  changed_.NotifyAll();
}

void ThreadExecutor::HoldAllocations() {
  MutexLock lock(mutex_);
  allocations_.held = true;
}

void ThreadExecutor::Resume() {
  MutexLock lock(mutex_);
  allocations_.held = false;
  changed_.NotifyAll();
}

size_t ThreadExecutor::waiting_allocations() const {
  MutexLock lock(mutex_);
  return allocations_.jobs.size();
}

void ThreadExecutor::Stop() {
  {
    MutexLock lock(mutex_);
    stopped_ = true;
    allocations_.held = false;
    changed_.NotifyAll();
  }
  if (allocation_thread_.joinable()) allocation_thread_.join();
  if (free_thread_.joinable()) free_thread_.join();
}

void ThreadExecutor::Run(Queue& queue) {
  while (true) {
    DeviceJob job;
    {
      MutexLock lock(mutex_);
      while (queue.held || (queue.jobs.empty() && !stopped_)) changed_.Wait(mutex_);
      if (queue.jobs.empty()) return;
      job = std::move(queue.jobs.front());
      queue.jobs.pop_front();
    }
    std::move(job)();
  }
}

}  // namespace heapbroker
