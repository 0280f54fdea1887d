// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/start_thread.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heapbroker {

absl::StatusOr<std::thread> StartThread(std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no thread can be started (", error.what(),
                     "): the limit on threads is reached (RLIMIT_NPROC, pids.max) or the host has "
                     "no memory"));
  }
}

}  // namespace heapbroker
