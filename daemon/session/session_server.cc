// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "daemon/session/session_server.h"

#include <pthread.h>

#include <utility>

#include "common/base/status_macros.h"

namespace heapbroker {

SessionServer::SessionServer(UniqueFd listener, Sessions& sessions,
                             absl::Span<DeviceBroker* const> brokers,
                             const SessionServerOptions& options, Logger& logger)
    : listener_(std::move(listener)),
      sessions_(sessions),
      brokers_(brokers.begin(), brokers.end()),
      options_(options),
      logger_(logger) {}

SessionServer::~SessionServer() { Stop(); }

absl::Status SessionServer::Start() {
  HB_ASSIGN_OR_RETURN(Epoll epoll, Epoll::Create());
  HB_ASSIGN_OR_RETURN(WakeUp stop, WakeUp::Create());
  HB_RETURN_IF_ERROR(epoll.Add(listener_, EPOLLIN, SessionLoop::kListenerTag));
  HB_RETURN_IF_ERROR(epoll.Add(stop.fd(), EPOLLIN, SessionLoop::kStopTag));
  stop_ = std::move(stop);
  loop_ = std::make_unique<SessionLoop>(std::move(listener_), std::move(epoll), sessions_, brokers_,
                                        options_, logger_);
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "hb-session");
    loop_->Run();
  });
  return absl::OkStatus();
}

void SessionServer::Stop() {
  if (thread_.joinable()) {
    stop_->Signal();
    thread_.join();
  }
  // Closes the listener: who connects from here on is told that nobody listens.
  loop_.reset();
  listener_.Reset();
}

}  // namespace heapbroker
