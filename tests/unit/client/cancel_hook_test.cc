// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/cancel_hook.h"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "common/base/mutex.h"
#include "gtest/gtest.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

TEST(CancelHookTest, EveryHookIsCalledOnceHoweverOftenItIsCancelled) {
  const auto cancellation = std::make_shared<Cancellation>();
  int calls = 0;
  const CancelHook one(cancellation, [&] { ++calls; });
  const CancelHook other(cancellation, [&] { ++calls; });
  EXPECT_FALSE(one.cancelled());
  cancellation->Cancel();
  cancellation->Cancel();
  EXPECT_EQ(calls, 2);
  EXPECT_TRUE(one.cancelled());
}

TEST(CancelHookTest, AHookThatComesTooLateIsNotCalledAndCanSee) {
  const auto cancellation = std::make_shared<Cancellation>();
  cancellation->Cancel();
  const CancelHook late(cancellation, [] { ADD_FAILURE() << "called"; });
  EXPECT_TRUE(late.cancelled());
}

TEST(CancelHookTest, AHookThatComesTooLateTakesNoOtherOneWithItWhenItEnds) {
  const auto cancellation = std::make_shared<Cancellation>();
  bool called = false;
  const CancelHook first(cancellation, [&] {
    const CancelHook late(cancellation, [] { ADD_FAILURE() << "called"; });
  });
  const CancelHook second(cancellation, [&] { called = true; });
  cancellation->Cancel();
  EXPECT_TRUE(called);
}

TEST(CancelHookTest, WhatHasEndedIsNotCalled) {
  const auto cancellation = std::make_shared<Cancellation>();
  {
    const CancelHook ended(cancellation, [] { ADD_FAILURE() << "called"; });
  }
  cancellation->Cancel();
}

TEST(CancelHookTest, WithoutACancellationNothingHappens) {
  const CancelHook none(nullptr, [] { ADD_FAILURE() << "called"; });
  EXPECT_FALSE(none.cancelled());
}

TEST(CancelHookTest, ItsEndWaitsForAHookThatIsBeingCalled) {
  const auto cancellation = std::make_shared<Cancellation>();
  std::atomic<bool> entered = false;
  std::atomic<bool> go_on = false;
  std::atomic<bool> left = false;
  std::optional<CancelHook> hook;
  hook.emplace(cancellation, [&] {
    entered = true;
    while (!go_on) std::this_thread::yield();
    left = true;
  });
  std::thread canceller([&] { cancellation->Cancel(); });
  ASSERT_TRUE(WaitFor([&] { return entered.load(); }));
  std::thread releaser([&] { go_on = true; });
  hook.reset();
  EXPECT_TRUE(left);
  canceller.join();
  releaser.join();
}

}  // namespace
}  // namespace heapbroker
