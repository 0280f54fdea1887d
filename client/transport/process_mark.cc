// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/process_mark.h"

#include <pthread.h>

#include <atomic>

#include "absl/strings/str_cat.h"

namespace heapbroker {
namespace {

std::atomic<uint64_t> forks = 0;

void CountFork() { forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

absl::Status CheckNotForked(pid_t connected) {
  const pid_t pid = getpid();
  if (pid == connected) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this process (", pid, ") was forked off one that had connected (", connected,
      "), which neither the session nor gRPC survives; fork before anything connects, or let the "
      "child exec"));
}

uint64_t ForkCount() {
  static const bool counted = pthread_atfork(nullptr, nullptr, CountFork) == 0;
  // Where the C library had no memory for it the kernel has to be asked.
  return counted ? forks.load(std::memory_order_relaxed) : static_cast<uint64_t>(getpid());
}

}  // namespace heapbroker
