// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Waiting for many descriptors at once.
#ifndef COMMON_POSIX_EPOLL_H_
#define COMMON_POSIX_EPOLL_H_

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

// An epoll instance. Descriptors are borrowed; each has a tag of the caller's
// that comes back with its events. Move-only; Wait is for one thread at a time,
// the others for any.
class Epoll {
 public:
  using Clock = std::chrono::steady_clock;

  // RESOURCE_EXHAUSTED: descriptors ran out.
  static absl::StatusOr<Epoll> Create();

  // `events` are EPOLLIN and so on.
  //   RESOURCE_EXHAUSTED  memory, or the user's watches, ran out
  absl::Status Add(const UniqueFd& fd, uint32_t events, uint64_t tag);
  // Replaces the events. Whatever holds already is reported once more, also with
  // EPOLLET, so nothing is missed in between.
  absl::Status Modify(const UniqueFd& fd, uint32_t events, uint64_t tag);
  // To be called before the descriptor is closed: a duplicate elsewhere would
  // keep the entry alive, and nobody could remove it any more.
  void Remove(const UniqueFd& fd);

  struct Event {
    uint64_t tag;
    uint32_t events;
  };
  // At least one event, or none when `deadline` has passed or a signal came.
  // Without a deadline it waits for ever.
  std::vector<Event> Wait(std::optional<Clock::time_point> deadline);

 private:
  explicit Epoll(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

// Wakes the thread that waits for it, from any other thread.
class WakeUp {
 public:
  // RESOURCE_EXHAUSTED: descriptors ran out.
  static absl::StatusOr<WakeUp> Create();

  // Readable from the first Signal to the next Clear.
  const UniqueFd& fd() const { return fd_; }
  void Signal();
  void Clear();

 private:
  explicit WakeUp(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace heapbroker
#endif  // COMMON_POSIX_EPOLL_H_
