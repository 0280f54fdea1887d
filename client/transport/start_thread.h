// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Threads, where there may be no room for another one.
#ifndef CLIENT_TRANSPORT_START_THREAD_H_
#define CLIENT_TRANSPORT_START_THREAD_H_

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace heapbroker {

// A thread that does `run`. std::thread throws where there can be none, which would end
// the process.
//   RESOURCE_EXHAUSTED  the user, the container or the host has as many as it may have
absl::StatusOr<std::thread> StartThread(std::function<void()> run);

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_START_THREAD_H_
