// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/connection_acceptor.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <chrono>
#include <utility>

#include "common/base/status_macros.h"
#include "common/posix/peer.h"
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

}  // namespace

absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> ConnectionAcceptor::Start(UniqueFd listener,
                                                                              const Limits& limits,
                                                                              Handler handler) {
  HB_ASSIGN_OR_RETURN(Epoll epoll, Epoll::Create());
  HB_ASSIGN_OR_RETURN(WakeUp wake, WakeUp::Create());
  auto acceptor = std::unique_ptr<ConnectionAcceptor>(new ConnectionAcceptor(
      std::move(listener), std::move(epoll), std::move(wake), limits, std::move(handler)));
  HB_RETURN_IF_ERROR(acceptor->epoll_.Add(acceptor->wake_.fd(), EPOLLIN, kWakeKey));
  HB_RETURN_IF_ERROR(acceptor->epoll_.Add(acceptor->listener_, EPOLLIN, kListenerKey));
  acceptor->thread_ = std::thread([raw = acceptor.get()] { raw->Run(); });
  return acceptor;
}

ConnectionAcceptor::ConnectionAcceptor(UniqueFd listener, Epoll epoll, WakeUp wake,
                                       const Limits& limits, Handler handler)
    : listener_(std::move(listener)),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      limits_(limits),
      handler_(std::move(handler)),
      last_key_(kListenerKey) {}

ConnectionAcceptor::~ConnectionAcceptor() { Stop(); }

void ConnectionAcceptor::Run() {
  while (true) {
    ResumeListeningIfDue();
    for (const Epoll::Event& event : epoll_.Wait(resume_at_)) {
      if (event.tag == kWakeKey) return;
      if (event.tag == kListenerKey) {
        AcceptWaiting();
      } else {
        Forget(event.tag);
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
  if (!HasRoomFor(connection)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return absl::OkStatus();
  }
  // A connection that cannot be watched is closed: its end would not be noticed.
  HB_ASSIGN_OR_RETURN(UniqueFd duplicate, DuplicateFd(connection.get()));
  const uint64_t key = ++last_key_;
  HB_RETURN_IF_ERROR(epoll_.Add(duplicate, EPOLLRDHUP | EPOLLHUP, key));
  duplicates_.emplace(key, std::move(duplicate));
  count_.fetch_add(1, std::memory_order_relaxed);
  handler_(std::move(connection));
  return absl::OkStatus();
}

bool ConnectionAcceptor::HasRoomFor(const UniqueFd& connection) const {
  if (duplicates_.size() < limits_.connections) return true;
  if (duplicates_.size() >= limits_.connections + limits_.reserved) return false;
  const absl::StatusOr<PeerCredentials> peer = GetPeerCredentials(connection);
  return peer.ok() && limits_.administrators.Include(peer->uid);
}

void ConnectionAcceptor::Forget(uint64_t key) {
  const auto found = duplicates_.find(key);
  if (found == duplicates_.end()) return;
  // Closing alone would not do: gRPC may still have its own descriptor of the
  // socket, and epoll would report the same end for ever.
  epoll_.Remove(found->second);
  // A peer that only says that it sends no more, and does not read, would leave gRPC
  // with a write that never ends, on a socket that nobody counts or could end later.
  // No client that waits for an answer does that.
  shutdown(found->second.get(), SHUT_RDWR);
  duplicates_.erase(found);
  count_.fetch_sub(1, std::memory_order_relaxed);
}

void ConnectionAcceptor::PauseListening() {
  epoll_.Modify(listener_, 0, kListenerKey).IgnoreError();
  resume_at_ = Epoll::Clock::now() + kPause;
}

void ConnectionAcceptor::ResumeListeningIfDue() {
  if (!resume_at_ || *resume_at_ > Epoll::Clock::now()) return;
  if (epoll_.Modify(listener_, EPOLLIN, kListenerKey).ok()) {
    resume_at_.reset();
  } else {
    resume_at_ = Epoll::Clock::now() + kPause;
  }
}

void ConnectionAcceptor::Stop() {
  if (!thread_.joinable()) return;
  wake_.Signal();
  thread_.join();
  listener_.Reset();
}

void ConnectionAcceptor::ShutDownConnections() {
  for (const auto& [key, duplicate] : duplicates_) shutdown(duplicate.get(), SHUT_RDWR);
}

}  // namespace heapbroker
