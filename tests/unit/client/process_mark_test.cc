// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/process_mark.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

// What `check` says in a forked child.
template <typename Check>
bool InAChild(Check check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status == 0;
}

TEST(ProcessMarkTest, OnlyAChildIsForked) {
  const ProcessMark mark;
  EXPECT_FALSE(mark.forked());
  EXPECT_THAT(mark.Check(), IsOk());
  EXPECT_TRUE(InAChild([&] { return mark.forked() && absl::IsFailedPrecondition(mark.Check()); }));
  EXPECT_FALSE(mark.forked()) << "its parent is not";
}

TEST(ProcessMarkTest, AMarkThatIsMadeInAChildIsTheChilds) {
  EXPECT_TRUE(InAChild([] {
    const ProcessMark mark;
    return !mark.forked() && InAChild([&] { return mark.forked(); });
  }));
}

TEST(ProcessMarkTest, TheErrorNamesBothProcesses) {
  EXPECT_THAT(CheckNotForked(getpid()), IsOk());
  EXPECT_THAT(CheckNotForked(getpid() + 1),
              StatusIs(absl::StatusCode::kFailedPrecondition, "was forked off one that had"));
}

}  // namespace
}  // namespace heapbroker
