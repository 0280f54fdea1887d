// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/posix_error.h"

#include <cerrno>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

TEST(PosixErrorTest, SaysWhatWhyAndWhatToDo) {
  const absl::Status status = PosixError(EACCES, "cannot open /x", "ask its owner");
  EXPECT_EQ(status.message(), "cannot open /x: Permission denied; ask its owner");
}

TEST(PosixErrorTest, TheCodeSaysWhetherTryingAgainMayHelp) {
  EXPECT_TRUE(absl::IsNotFound(PosixError(ENOENT, "")));
  EXPECT_TRUE(absl::IsPermissionDenied(PosixError(EPERM, "")));
  EXPECT_TRUE(absl::IsResourceExhausted(PosixError(EMFILE, "")));
  EXPECT_TRUE(absl::IsResourceExhausted(PosixError(ETOOMANYREFS, "")));
  EXPECT_TRUE(absl::IsUnavailable(PosixError(EPIPE, "")));
  EXPECT_TRUE(absl::IsUnavailable(PosixError(ECONNREFUSED, "")));
  EXPECT_TRUE(absl::IsInternal(PosixError(EIO, "")));
}

}  // namespace
}  // namespace heapbroker
