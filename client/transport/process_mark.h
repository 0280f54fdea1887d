// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Whether this process is still the one that something was made in.
#ifndef CLIENT_TRANSPORT_PROCESS_MARK_H_
#define CLIENT_TRANSPORT_PROCESS_MARK_H_

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>

#include "absl/status/status.h"

namespace heapbroker {

// FAILED_PRECONDITION in a process that was forked off `connected`, where nothing works
// that has threads or locks.
absl::Status CheckNotForked(pid_t connected);

// Changes in a child when this process forks, and never here. Makes no system call, so
// that what takes no more than a few nanoseconds can ask each time.
uint64_t ForkCount();

// Made with what it is for. A value.
class ProcessMark {
 public:
  bool forked() const { return ForkCount() != forks_; }
  // As CheckNotForked.
  absl::Status Check() const { return forked() ? CheckNotForked(pid_) : absl::OkStatus(); }

 private:
  pid_t pid_ = getpid();
  uint64_t forks_ = ForkCount();
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_PROCESS_MARK_H_
