// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/exit_code.h"

#include <gtest/gtest.h>

namespace heapbroker {
namespace {

TEST(ExitCodeTest, TellsNobodyThereFromARefusal) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), ExitCode::kFine);
  EXPECT_EQ(ExitCodeFor(absl::NotFoundError("no socket")), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeFor(absl::UnavailableError("nobody listens")), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeFor(absl::DeadlineExceededError("no answer")), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeFor(absl::PermissionDeniedError("not yours")), ExitCode::kRefused);
  EXPECT_EQ(ExitCodeFor(absl::FailedPreconditionError("version")), ExitCode::kRefused);
}

TEST(ExitCodeTest, NumbersAreThoseThatScriptsKnow) {
  EXPECT_EQ(static_cast<int>(ExitCode::kFine), 0);
  EXPECT_EQ(static_cast<int>(ExitCode::kRefused), 1);
  EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::kUnreachable), 3);
}

}  // namespace
}  // namespace heapbroker
