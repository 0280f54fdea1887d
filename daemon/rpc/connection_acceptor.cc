// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/connection_acceptor.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <utility>

#include "common/base/status_macros.h"
#include "common/posix/posix_error.h"
#include "common/posix/unix_socket.h"

namespace heapbroker {
namespace {

// Keys of epoll; connections count up from the last one.
constexpr uint64_t kWakeKey = 0;
constexpr uint64_t kListenerKey = 1;

// Long enough to cost nothing, short enough for someone who waits to connect.
constexpr std::chrono::milliseconds kPause(200);

// So that a flood of connections does not keep the loop from seeing others end.
constexpr int kAcceptsPerRound = 16;

epoll_event EventOf(uint32_t events, uint64_t key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return event;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Start(UniqueFd listener,
                                                                              Handler handler) {
  UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return PosixError(errno, "cannot make an epoll descriptor");
  UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return PosixError(errno, "cannot make an eventfd");
  auto acceptor = std::unique_ptr<ConnectionAcceptor>(new ConnectionAcceptor(
      std::move(listener), std::move(epoll), std::move(wake), std::move(handler)));
  HB_RETURN_IF_ERROR(acceptor->Watch(acceptor->wake_.get(), EPOLLIN, kWakeKey));
  HB_RETURN_IF_ERROR(acceptor->Watch(acceptor->listener_.get(), EPOLLIN, kListenerKey));
  acceptor->thread_ = std::thread([raw = acceptor.get()] { raw->Run(); });
  return acceptor;
}

ConnectionAcceptor::ConnectionAcceptor(UniqueFd listener, UniqueFd epoll, UniqueFd wake,
                                       Handler handler)
    : listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      handler_(std::move(handler)),
      last_key_(kListenerKey) {}

ConnectionAcceptor::~ConnectionAcceptor() { Stop(); }

absl::Status ConnectionAcceptor::Watch(int fd, uint32_t events, uint64_t key) {
  epoll_event event = EventOf(events, key);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return PosixError(errno, "cannot watch a descriptor");
  }
  return absl::OkStatus();
}

void ConnectionAcceptor::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int timeout_ms = ResumeListeningIfDue();
    const int count =
        epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
    for (int i = 0; i < count; ++i) {
      const uint64_t key = events[i].data.u64;
      if (key == kWakeKey) return;
      if (key == kListenerKey) {
        AcceptWaiting();
      } else {
        Forget(key);
      }
    }
  }
}

void ConnectionAcceptor::AcceptWaiting() {
  for (int i = 0; i < kAcceptsPerRound; ++i) {
    bool accepted = false;
    if (!AcceptOne(&accepted).ok()) return PauseListening();
    if (!accepted) return;
  }
}

absl::Status ConnectionAcceptor::AcceptOne(bool* accepted) {
  HB_ASSIGN_OR_RETURN(UniqueFd connection, AcceptUnix(listener_));
  if (!connection) return absl::OkStatus();
  *accepted = true;
  // A connection that cannot be watched is closed: its end would not be noticed.
  HB_ASSIGN_OR_RETURN(UniqueFd duplicate, DuplicateFd(connection.get()));
  const uint64_t key = ++last_key_;
  HB_RETURN_IF_ERROR(Watch(duplicate.get(), EPOLLRDHUP | EPOLLHUP, key));
  duplicates_.emplace(key, std::move(duplicate));
  count_.fetch_add(1, std::memory_order_relaxed);
  handler_(std::move(connection));
  return absl::OkStatus();
}

void ConnectionAcceptor::Forget(uint64_t key) {
  const auto found = duplicates_.find(key);
  if (found == duplicates_.end()) return;
  // Closing alone would not do: gRPC may still have its own descriptor of the
  // socket, and epoll would report the same end for ever.
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.get(), nullptr);
  duplicates_.erase(found);
  count_.fetch_sub(1, std::memory_order_relaxed);
}

void ConnectionAcceptor::PauseListening() {
  epoll_event event = EventOf(0, kListenerKey);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
  resume_at_ = std::chrono::steady_clock::now() + kPause;
}

int ConnectionAcceptor::ResumeListeningIfDue() {
  if (!resume_at_.has_value()) return -1;
  const auto left = *resume_at_ - std::chrono::steady_clock::now();
  if (left > left.zero()) {
    return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  }
  epoll_event event = EventOf(EPOLLIN, kListenerKey);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.get(), &event);
  resume_at_.reset();
  return -1;
}

void ConnectionAcceptor::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  // Cannot fail: the counter of an eventfd has room for more than this one.
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof(one));
  thread_.join();
  listener_.Reset();
}

void ConnectionAcceptor::ShutDownConnections() {
  for (const auto& [key, duplicate] : duplicates_) shutdown(duplicate.get(), SHUT_RDWR);
}

}  // namespace heapbroker
