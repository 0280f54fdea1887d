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

void RequestUndoer::Run() {
  while (true) {
    const auto context = std::make_shared<grpc::ClientContext>();
    v1::ReleaseRequest request;
    {
      MutexLock lock(mutex_);
      call_ = nullptr;
      while (waiting_.empty() && !stopping_) changed_.Wait(mutex_);
      if (stopping_) return;
      request = std::move(waiting_.front());
      waiting_.pop_front();
      call_ = context;
    }
    release_(*context, request);
  }
}

}  // namespace heapbroker
