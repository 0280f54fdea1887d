// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

UniqueFd OpenSomething() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(UniqueFdTest, ClosesWhatItOwns) {
  int number;
  {
    const UniqueFd fd = OpenSomething();
    number = fd.get();
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(UniqueFdTest, MovingPassesOwnershipOn) {
  UniqueFd first = OpenSomething();
  const int number = first.get();
  UniqueFd second = std::move(first);
  EXPECT_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): what moving leaves.
  EXPECT_EQ(second.get(), number);
  UniqueFd third = OpenSomething();
  const int replaced = third.get();
  third = std::move(second);
  EXPECT_FALSE(IsOpen(replaced));
  EXPECT_TRUE(IsOpen(number));
}

TEST(UniqueFdTest, AssigningToItselfKeepsItOpen) {
  UniqueFd fd = OpenSomething();
  UniqueFd& same = fd;
  fd = std::move(same);
  EXPECT_TRUE(IsOpen(fd.get()));
}

TEST(UniqueFdTest, ReleaseGivesUpWithoutClosing) {
  UniqueFd fd = OpenSomething();
  const int number = fd.Release();
  EXPECT_FALSE(fd);
  EXPECT_TRUE(IsOpen(number));
  fd.Reset(number);
}

TEST(UniqueFdTest, ClosingLeavesErrnoAlone) {
  UniqueFd fd(1 << 20);  // Not open: closing it fails.
  errno = ENOENT;
  fd.Reset();
  EXPECT_EQ(errno, ENOENT);
}

TEST(DuplicateFdTest, IsAnotherDescriptorWithCloseOnExec) {
  const UniqueFd fd(open("/dev/null", O_RDONLY));
  const absl::StatusOr<UniqueFd> copy = DuplicateFd(fd.get());
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_NE(copy->get(), fd.get());
  EXPECT_EQ(fcntl(copy->get(), F_GETFD), FD_CLOEXEC);
}

TEST(DuplicateFdTest, RefusesWhatIsNotOpen) {
  EXPECT_TRUE(absl::IsInvalidArgument(DuplicateFd(1 << 20).status()));
}

}  // namespace
}  // namespace heapbroker
