// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/unit/client/fake_session_socket.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "common/posix/packet.h"
#include "common/posix/unix_socket.h"
#include "gtest/gtest.h"

namespace heapbroker {

SessionAnswer Refuse(uint32_t code, const std::string& message) {
  SessionAnswer answer;
  answer.reply.mutable_refusal()->set_code(code);
  answer.reply.mutable_refusal()->set_message(message);
  return answer;
}

FakeSessionSocket::FakeSessionSocket(const std::string& path, Answerer answerer)
    : path_(path), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), answerer_(std::move(answerer)) {
  absl::StatusOr<UniqueFd> listener = ListenUnix(path, SocketKind::kSeqPacket, 0600);
  EXPECT_TRUE(listener.ok()) << listener.status();
  listener_ = *std::move(listener);
  thread_ = std::thread([this] { Run(); });
}

FakeSessionSocket::~FakeSessionSocket() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  Wake();
  thread_.join();
  unlink(path_.c_str());
}

void FakeSessionSocket::Wake() { EXPECT_EQ(eventfd_write(wake_.get(), 1), 0); }

void FakeSessionSocket::AnswerWith(Answerer answerer) {
  MutexLock lock(mutex_);
  answerer_ = std::move(answerer);
}

std::vector<v1::SessionRequest> FakeSessionSocket::requests() const {
  MutexLock lock(mutex_);
  return requests_;
}

size_t FakeSessionSocket::connections() const {
  MutexLock lock(mutex_);
  return open_;
}

void FakeSessionSocket::HangUpAll() {
  {
    MutexLock lock(mutex_);
    hang_up_ = true;
  }
  Wake();
}

void FakeSessionSocket::Run() {
  while (true) {
    std::vector<pollfd> entries = {{.fd = wake_.get(), .events = POLLIN, .revents = 0},
                                   {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const UniqueFd& connection : connections_) {
      entries.push_back({.fd = connection.get(), .events = POLLIN, .revents = 0});
    }
    poll(entries.data(), entries.size(), -1);
    eventfd_t ignored;
    if (entries[0].revents != 0) eventfd_read(wake_.get(), &ignored);
    std::vector<UniqueFd> kept;
    for (size_t i = 0; i < connections_.size(); ++i) {
      if (entries[i + 2].revents == 0 || Serve(connections_[i])) {
        kept.push_back(std::move(connections_[i]));
      }
    }
    connections_ = std::move(kept);
    if (entries[1].revents != 0) {
      absl::StatusOr<UniqueFd> accepted = AcceptUnix(listener_);
      if (accepted.ok() && accepted->valid()) connections_.push_back(*std::move(accepted));
    }
    MutexLock lock(mutex_);
    if (std::exchange(hang_up_, false) || stopping_) connections_.clear();
    open_ = connections_.size();
    if (stopping_) return;
  }
}

bool FakeSessionSocket::Serve(const UniqueFd& connection) {
  char buffer[4096];
  const absl::StatusOr<ReceivedPacket> packet =
      ReceivePacket(connection, absl::MakeSpan(buffer), 0);
  if (!packet.ok() || packet->kind == ReceivedPacket::Kind::kEnd) return false;
  if (packet->kind == ReceivedPacket::Kind::kWouldBlock) return true;
  v1::SessionRequest request;
  if (!request.ParseFromArray(buffer, static_cast<int>(packet->size))) return false;
  Answerer answerer;
  {
    MutexLock lock(mutex_);
    requests_.push_back(request);
    answerer = answerer_;
  }
  const SessionAnswer answer = answerer(request);
  if (answer.then == SessionAnswer::Then::kHangUp) return false;
  if (answer.then == SessionAnswer::Then::kIgnore) return true;
  std::vector<int> fds;
  for (const UniqueFd& fd : answer.fds) fds.push_back(fd.get());
  fds.insert(fds.end(), answer.borrowed_fds.begin(), answer.borrowed_fds.end());
  return SendPacket(connection, answer.reply.SerializeAsString(), fds).ok();
}

}  // namespace heapbroker
