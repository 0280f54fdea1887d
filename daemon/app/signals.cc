// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/signals.h"

#include <pthread.h>
#include <unistd.h>

namespace heapbroker {

EndSignals::EndSignals(Logger& logger) : logger_(logger) {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  thread_ = std::thread([this] { Run(); });
}

EndSignals::~EndSignals() {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    state_ = State::kDestroyed;
  }
  // To that thread alone.
  pthread_kill(thread_.native_handle(), SIGINT);
  thread_.join();
}

void EndSignals::Wait() {
  {
    MutexLock lock(mutex_);
    state_ = State::kWaiting;
    while (state_ == State::kWaiting) changed_.Wait(mutex_);
  }
  // It ends with the signal. Here, since main leaves without the destructor.
  thread_.join();
}

void EndSignals::Run() {
  int signal = 0;
  sigwait(&set_, &signal);
  {
    MutexLock lock(mutex_);
    if (state_ == State::kDestroyed) return;
    if (state_ == State::kWaiting) {
      state_ = State::kCame;
      changed_.NotifyAll();
      return;
    }
  }
  logger_.Info("ended by a signal while starting");
  // Not through exit(): the thread that starts may be anywhere.
  _exit(0);
}

}  // namespace heapbroker
