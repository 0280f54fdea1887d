// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/epoll.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "common/posix/posix_error.h"

namespace heapbroker {
namespace {

constexpr size_t kMaxEventsAtOnce = 64;

// Rounded up: waking before the deadline would only mean waiting again.
int MillisecondsUntil(std::optional<Epoll::Clock::time_point> deadline) {
  if (!deadline) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*deadline - Epoll::Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

absl::StatusOr<Epoll> Epoll::Create() {
  UniqueFd fd(epoll_create1(EPOLL_CLOEXEC));
  if (!fd) return PosixError(errno, "cannot create an epoll instance");
  return Epoll(std::move(fd));
}

absl::Status Epoll::Add(const UniqueFd& fd, uint32_t events, uint64_t tag) {
  epoll_event event{.events = events, .data = {.u64 = tag}};
  if (epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd.get(), &event) != 0) {
    return PosixError(errno, "cannot watch a descriptor");
  }
  return absl::OkStatus();
}

absl::Status Epoll::Modify(const UniqueFd& fd, uint32_t events, uint64_t tag) {
  epoll_event event{.events = events, .data = {.u64 = tag}};
  if (epoll_ctl(fd_.get(), EPOLL_CTL_MOD, fd.get(), &event) != 0) {
    return PosixError(errno, "cannot change how a descriptor is watched");
  }
  return absl::OkStatus();
}

void Epoll::Remove(const UniqueFd& fd) {
  // Fails only for what is not watched, and then there is nothing to do.
  epoll_ctl(fd_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
}

std::vector<Epoll::Event> Epoll::Wait(std::optional<Clock::time_point> deadline) {
  std::array<epoll_event, kMaxEventsAtOnce> events;
  const int count =
      epoll_wait(fd_.get(), events.data(), events.size(), MillisecondsUntil(deadline));
  std::vector<Event> result;
  result.reserve(std::max(count, 0));
  for (int i = 0; i < count; ++i) result.push_back({events[i].data.u64, events[i].events});
  return result;
}

absl::StatusOr<WakeUp> WakeUp::Create() {
  UniqueFd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd) return PosixError(errno, "cannot create an event descriptor");
  return WakeUp(std::move(fd));
}

void WakeUp::Signal() {
  // Fails only when it has been signalled 2^64 - 2 times, and is readable then.
  eventfd_write(fd_.get(), 1);
}

void WakeUp::Clear() {
  eventfd_t count;
  eventfd_read(fd_.get(), &count);
}

}  // namespace heapbroker
