// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/request_undoer.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "client/transport/start_thread.h"

namespace heapbroker {

RequestUndoer::~RequestUndoer() {
  std::shared_ptr<grpc::ClientContext> lasting;
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    lasting = lasting_;
    thread = std::move(thread_);
  }
  changed_.NotifyAll();
  if (lasting != nullptr) lasting->TryCancel();
  if (thread.joinable()) thread.join();
}

void RequestUndoer::Add(Call call) {
  {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(call));
    if (!thread_.joinable()) {
      absl::StatusOr<std::thread> thread = StartThread([this] { Run(); });
      if (thread.ok()) thread_ = *std::move(thread);
    }
  }
  changed_.NotifyAll();
}

std::optional<RequestUndoer::Call> RequestUndoer::Next() {
  MutexLock lock(mutex_);
  while (waiting_.empty() && !stopping_) changed_.Wait(mutex_);
  if (stopping_) return std::nullopt;
  Call call = std::move(waiting_.front());
  waiting_.pop_front();
  return call;
}

bool RequestUndoer::Make(const Call& call) {
  // A context is good for one call.
  const auto context = std::make_shared<grpc::ClientContext>();
  {
    MutexLock lock(mutex_);
    if (stopping_) return true;
    lasting_ = context;
  }
  const bool done = call(*context);
  MutexLock lock(mutex_);
  lasting_ = nullptr;
  return done;
}

void RequestUndoer::Pause(std::chrono::milliseconds pause) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + pause;
  MutexLock lock(mutex_);
  while (!stopping_ && Clock::now() < end) changed_.WaitFor(mutex_, end - Clock::now());
}

void RequestUndoer::Run() {
  std::chrono::milliseconds pause = kPause;
  while (std::optional<Call> call = Next()) {
    if (Make(*call)) {
      pause = kPause;
      continue;
    }
    {
      // Behind the others: what is wrong may be wrong with this one only.
      MutexLock lock(mutex_);
      waiting_.push_back(*std::move(call));
    }
    Pause(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

}  // namespace heapbroker
