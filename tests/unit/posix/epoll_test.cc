// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/epoll.h"

#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using Clock = Epoll::Clock;

TEST(EpollTest, TellsWhichDescriptorIsReadyByItsTag) {
  absl::StatusOr<Epoll> epoll = Epoll::Create();
  absl::StatusOr<WakeUp> first = WakeUp::Create();
  absl::StatusOr<WakeUp> second = WakeUp::Create();
  ASSERT_TRUE(epoll.ok() && first.ok() && second.ok());
  ASSERT_TRUE(epoll->Add(first->fd(), EPOLLIN, 7).ok());
  ASSERT_TRUE(epoll->Add(second->fd(), EPOLLIN, ~uint64_t{0}).ok());
  second->Signal();
  const std::vector<Epoll::Event> events = epoll->Wait(std::nullopt);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].tag, ~uint64_t{0});
  EXPECT_EQ(events[0].events, uint32_t{EPOLLIN});
}

TEST(EpollTest, ReturnsNothingOnceTheDeadlineHasPassed) {
  absl::StatusOr<Epoll> epoll = Epoll::Create();
  ASSERT_TRUE(epoll.ok()) << epoll.status();
  EXPECT_TRUE(epoll->Wait(Clock::now() - std::chrono::hours(1)).empty());
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(3);
  EXPECT_TRUE(epoll->Wait(deadline).empty());
  EXPECT_GE(Clock::now(), deadline);
}

TEST(EpollTest, WhatIsRemovedIsSilent) {
  absl::StatusOr<Epoll> epoll = Epoll::Create();
  absl::StatusOr<WakeUp> wake_up = WakeUp::Create();
  ASSERT_TRUE(epoll.ok() && wake_up.ok());
  ASSERT_TRUE(epoll->Add(wake_up->fd(), EPOLLIN, 1).ok());
  wake_up->Signal();
  epoll->Remove(wake_up->fd());
  EXPECT_TRUE(epoll->Wait(Clock::now()).empty());
}

TEST(EpollTest, ModifyingReportsAnEdgeThatHoldsAlready) {
  absl::StatusOr<Epoll> epoll = Epoll::Create();
  ASSERT_TRUE(epoll.ok()) << epoll.status();
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
  const UniqueFd socket(fds[0]);
  const UniqueFd other(fds[1]);
  ASSERT_TRUE(epoll->Add(socket, EPOLLIN, 1).ok());
  EXPECT_TRUE(epoll->Wait(Clock::now()).empty());
  ASSERT_TRUE(epoll->Modify(socket, EPOLLOUT | EPOLLET, 2).ok());
  const std::vector<Epoll::Event> events = epoll->Wait(Clock::now());
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].tag, 2u);
  EXPECT_TRUE(epoll->Wait(Clock::now()).empty());
}

TEST(WakeUpTest, WakesAnotherThreadUntilItIsCleared) {
  absl::StatusOr<Epoll> epoll = Epoll::Create();
  absl::StatusOr<WakeUp> wake_up = WakeUp::Create();
  ASSERT_TRUE(epoll.ok() && wake_up.ok());
  ASSERT_TRUE(epoll->Add(wake_up->fd(), EPOLLIN, 1).ok());
  std::thread thread([&] { wake_up->Signal(); });
  EXPECT_EQ(epoll->Wait(std::nullopt).size(), 1u);
  thread.join();
  EXPECT_EQ(epoll->Wait(Clock::now()).size(), 1u);
  wake_up->Clear();
  EXPECT_TRUE(epoll->Wait(Clock::now()).empty());
}

}  // namespace
}  // namespace heapbroker
