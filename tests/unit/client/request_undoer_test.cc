// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/request_undoer.h"

#include <memory>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;

v1::ReleaseRequest Request(uint64_t id) {
  v1::ReleaseRequest request;
  request.set_request_id(id);
  return request;
}

// A daemon that answers when it is told to.
class RequestUndoerTest : public testing::Test {
 protected:
  bool Release(const v1::ReleaseRequest& request) {
    MutexLock lock(mutex_);
    called_.push_back(request.request_id());
    called_from_.push_back(std::this_thread::get_id());
    while (hangs_) changed_.Wait(mutex_);
    return !unreachable_;
  }
  void SetUnreachable(bool unreachable) {
    MutexLock lock(mutex_);
    unreachable_ = unreachable;
  }
  void Hang(bool hangs) {
    {
      MutexLock lock(mutex_);
      hangs_ = hangs;
    }
    changed_.NotifyAll();
  }
  std::vector<uint64_t> called() {
    MutexLock lock(mutex_);
    return called_;
  }

  Mutex mutex_;
  CondVar changed_;
  bool hangs_ ABSL_GUARDED_BY(mutex_) = false;
  bool unreachable_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<uint64_t> called_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread::id> called_from_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RequestUndoer> undoer_ = std::make_unique<RequestUndoer>(
      [this](grpc::ClientContext&, const v1::ReleaseRequest& request) { return Release(request); });
};

TEST_F(RequestUndoerTest, NobodyWaitsForADaemonThatHangs) {
  Hang(true);
  undoer_->Add(Request(1));
  undoer_->Add(Request(2));
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

TEST_F(RequestUndoerTest, RepeatsWhatDidNotReachTheDaemonUntilItDoes) {
  SetUnreachable(true);
  undoer_->Add(Request(1));
  undoer_->Add(Request(2));
  EXPECT_TRUE(WaitFor([&] { return called().size() >= 2; }));
  EXPECT_THAT(called(), ::testing::Each(1));
  SetUnreachable(false);
  EXPECT_TRUE(WaitFor([&] { return called().back() == 2; }));
}

TEST_F(RequestUndoerTest, EndsThoughTheDaemonCannotBeReached) {
  SetUnreachable(true);
  undoer_->Add(Request(1));
  EXPECT_TRUE(WaitFor([&] { return !called().empty(); }));
  undoer_.reset();
}

TEST_F(RequestUndoerTest, WithoutARequestThereIsNothingToEnd) {
  undoer_.reset();
  EXPECT_TRUE(called().empty());
}

}  // namespace
}  // namespace heapbroker
