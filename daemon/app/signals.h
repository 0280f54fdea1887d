// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The signals that end the daemon.
#ifndef DAEMON_APP_SIGNALS_H_
#define DAEMON_APP_SIGNALS_H_

#include <csignal>

namespace heapbroker {

// Blocks SIGTERM and SIGINT for this thread and all that it makes later, so that
// they are waited for in one place and no handler runs in the middle of anything;
// and ignores SIGPIPE, since peers may hang up at any time.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);
  }

  // Returns when one has come. Further ones change nothing: a terminal and a
  // supervisor may both send one, and the end takes a bounded time.
  void Wait() const {
    int signal = 0;
    sigwait(&set_, &signal);
  }

 private:
  sigset_t set_;
};

}  // namespace heapbroker
#endif  // DAEMON_APP_SIGNALS_H_
