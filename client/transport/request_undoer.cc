// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/request_undoer.h"

#include <utility>

namespace heapbroker {

RequestUndoer::~RequestUndoer() {
  std::shared_ptr<grpc::ClientContext> call;
  std::thread thread;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    call = call_;
    thread = std::move(thread_);
  }
  changed_.NotifyAll();
  if (call != nullptr) call->TryCancel();
  if (thread.joinable()) thread.join();
}

void RequestUndoer::Add(v1::ReleaseRequest request) {
  {
    MutexLock lock(mutex_);
    waiting_.push_back(std::move(request));
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  }
  changed_.NotifyAll();
}

std::optional<v1::ReleaseRequest> RequestUndoer::Next() {
  MutexLock lock(mutex_);
  while (waiting_.empty() && !stopping_) changed_.Wait(mutex_);
  if (stopping_) return std::nullopt;
  v1::ReleaseRequest request = std::move(waiting_.front());
  waiting_.pop_front();
  return request;
}

bool RequestUndoer::Call(const v1::ReleaseRequest& request) {
  // A context is good for one call.
  const auto context = std::make_shared<grpc::ClientContext>();
  {
    MutexLock lock(mutex_);
    if (stopping_) return true;
    call_ = context;
  }
  const bool done = release_(*context, request);
  MutexLock lock(mutex_);
  call_ = nullptr;
  return done;
}

void RequestUndoer::Pause() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + kPause;
  MutexLock lock(mutex_);
  while (!stopping_ && Clock::now() < end) changed_.WaitFor(mutex_, end - Clock::now());
}

void RequestUndoer::Run() {
  while (const std::optional<v1::ReleaseRequest> request = Next()) {
    while (!Call(*request)) Pause();
  }
}

}  // namespace heapbroker
