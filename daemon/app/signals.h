// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The signals that end the daemon.
#ifndef DAEMON_APP_SIGNALS_H_
#define DAEMON_APP_SIGNALS_H_

#include <csignal>
#include <thread>

#include "common/base/mutex.h"
#include "common/posix/logging.h"

namespace heapbroker {

// Blocks SIGTERM and SIGINT for the calling thread and all that it makes later,
// and waits for them on a thread of its own, so that no handler runs in the middle
// of anything; and ignores SIGPIPE, since peers may hang up at any time. To be
// made before any other thread; one in a process.
//
//   starting ──Wait()──▶ waiting ──signal──▶ Wait() returns
//      └──signal──▶ the process ends
//
// While the daemon starts, a signal ends the process at once: a driver may hang
// while it is opened, nobody is served yet, and the kernel cleans up as well as
// anyone. Afterwards the end is an orderly one, whose time is bounded; more
// signals then change nothing, for a terminal and a supervisor may both send one.
class EndSignals {
 public:
  // `logger` is told of an end while starting, and must outlive this.
  explicit EndSignals(Logger& logger);
  ~EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Returns when a signal has come.
  void Wait();

 private:
  enum class State { kStarting, kWaiting, kCame, kDestroyed };

  void Run();

  Logger& logger_;
  sigset_t set_;
  Mutex mutex_;
  CondVar changed_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kStarting;
  std::thread thread_;  // Last: it uses all of the others.
};

}  // namespace heapbroker
#endif  // DAEMON_APP_SIGNALS_H_
