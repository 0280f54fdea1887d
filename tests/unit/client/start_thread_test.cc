// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/start_thread.h"

#include <thread>

#include "gtest/gtest.h"
#include "tests/support/no_more_threads.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

TEST(StartThreadTest, StartsOneThatDoesWhatItIsTold) {
  bool done = false;
  ASSERT_OK_AND_ASSIGN(std::thread thread, StartThread([&] { done = true; }));
  thread.join();
  EXPECT_TRUE(done);
}

TEST(StartThreadTest, SaysThatThereCanBeNone) {
  const NoMoreThreads no_more;
  EXPECT_THAT(StartThread([] {}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, "no thread can be started"));
}

}  // namespace
}  // namespace heapbroker
