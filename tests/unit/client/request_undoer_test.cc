// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/request_undoer.h"

#include <memory>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "common/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/no_more_threads.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

// A daemon that answers when it is told to.
class RequestUndoerTest : public testing::Test {
 protected:
  // A call with this number.
  RequestUndoer::Call Call(int number) {
    return [this, number](grpc::ClientContext&) {
      MutexLock lock(mutex_);
      called_.push_back(number);
      called_from_.push_back(std::this_thread::get_id());
      while (hangs_) changed_.Wait(mutex_);
      return !failing_.contains(number);
    };
  }
  void SetFailing(std::set<int> failing) {
    MutexLock lock(mutex_);
    failing_ = std::move(failing);
  }
  void Hang(bool hangs) {
    {
      MutexLock lock(mutex_);
      hangs_ = hangs;
    }
    changed_.NotifyAll();
  }
  std::vector<int> called() {
    MutexLock lock(mutex_);
    return called_;
  }

  Mutex mutex_;
  CondVar changed_;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<int> failing_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> called_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread::id> called_from_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RequestUndoer> undoer_ = std::make_unique<RequestUndoer>();
};

TEST_F(RequestUndoerTest, NobodyWaitsForADaemonThatHangs) {
  Hang(true);
  undoer_->Add(Call(1));
  undoer_->Add(Call(2));
  EXPECT_TRUE(WaitFor([&] { return !called().empty(); }));
  EXPECT_THAT(called(), ElementsAre(1));
  Hang(false);
  EXPECT_TRUE(WaitFor([&] { return called().size() == 2; }));
  EXPECT_THAT(called(), ElementsAre(1, 2));
  MutexLock lock(mutex_);
  for (const std::thread::id& thread : called_from_) {
    EXPECT_NE(thread, std::this_thread::get_id());
  }
}

TEST_F(RequestUndoerTest, RepeatsWhatFailedUntilItDoesNot) {
  SetFailing({1, 2});
  undoer_->Add(Call(1));
  undoer_->Add(Call(2));
  EXPECT_TRUE(WaitFor([&] { return called().size() >= 3; }));
  SetFailing({});
  const size_t before = called().size();
  EXPECT_TRUE(WaitFor([&] { return called().size() >= before + 2; }));
  EXPECT_THAT(called(), IsSupersetOf({1, 1, 2, 2}));
}

TEST_F(RequestUndoerTest, OneThatAlwaysFailsHoldsUpNoOther) {
  SetFailing({1});
  undoer_->Add(Call(1));
  EXPECT_TRUE(WaitFor([&] { return called().size() >= 2; }));
  undoer_->Add(Call(2));
  EXPECT_TRUE(WaitFor([&] { return absl::c_linear_search(called(), 2); }));
}

TEST_F(RequestUndoerTest, EndsThoughTheDaemonCannotBeReached) {
  SetFailing({1});
  undoer_->Add(Call(1));
  EXPECT_TRUE(WaitFor([&] { return !called().empty(); }));
  undoer_.reset();
}

TEST_F(RequestUndoerTest, WhatWasAddedWhenThereCouldBeNoThreadGoesWithTheNext) {
  {
    const NoMoreThreads no_more;
    undoer_->Add(Call(1));
  }
  EXPECT_THAT(called(), IsEmpty());
  undoer_->Add(Call(2));
  EXPECT_TRUE(WaitFor([&] { return called().size() == 2; }));
  EXPECT_THAT(called(), ElementsAre(1, 2));
}

TEST_F(RequestUndoerTest, WithoutARequestThereIsNothingToEnd) {
  undoer_.reset();
  EXPECT_TRUE(called().empty());
}

}  // namespace
}  // namespace heapbroker
