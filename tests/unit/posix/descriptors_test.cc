// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/descriptors.h"

#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "common/posix/unique_fd.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

TEST(DescriptorsTest, CountsWhatIsOpenAndNotTheCountingItself) {
  const uint64_t before = OpenDescriptorCount();
  {
    const UniqueFd one(dup(STDIN_FILENO));
    const UniqueFd two(dup(STDIN_FILENO));
    EXPECT_EQ(OpenDescriptorCount(), before + 2);
  }
  EXPECT_EQ(OpenDescriptorCount(), before);
}

TEST(DescriptorsTest, CountsThousandsAndThoseWithHighNumbers) {
  const uint64_t before = OpenDescriptorCount();
  std::vector<UniqueFd> open;
  for (int i = 0; i < 700; ++i) open.emplace_back(dup(STDIN_FILENO));
  EXPECT_EQ(OpenDescriptorCount(), before + 700);
  // Leaves holes.
  for (int i = 0; i < 700; i += 2) open[i].Reset();
  EXPECT_EQ(OpenDescriptorCount(), before + 350);
}

TEST(DescriptorsTest, TellsTheSoftLimit) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit lower{.rlim_cur = 100, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  EXPECT_EQ(DescriptorLimit(), 100u);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace
}  // namespace heapbroker
