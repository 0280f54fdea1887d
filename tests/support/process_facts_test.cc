// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process_facts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "common/posix/unique_fd.h"

namespace heapbroker {
namespace {

constexpr pid_t kNobody = 999999999;  // Past the kernel's largest pid.

TEST(ProcessFactsTest, CountsOneMoreDescriptorAfterOneMoreOpen) {
  const auto before = OpenDescriptorCount(getpid());
  ASSERT_TRUE(before.ok()) << before.status();
  const UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto after = OpenDescriptorCount(getpid());
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(*after, *before + 1);
  const auto targets = OpenDescriptors(getpid());
  ASSERT_TRUE(targets.ok()) << targets.status();
  EXPECT_NE(std::find(targets->begin(), targets->end(), "/dev/null"), targets->end());
}

TEST(ProcessFactsTest, ANewMappingShowsItsFile) {
  const UniqueFd fd(memfd_create("facts", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(fd.get(), 1 << 20), 0);
  struct stat facts;
  ASSERT_EQ(fstat(fd.get(), &facts), 0);
  void* const address = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  ASSERT_NE(address, MAP_FAILED);
  const auto mappings = FileMappings(getpid());
  munmap(address, 1 << 20);
  ASSERT_TRUE(mappings.ok()) << mappings.status();
  const auto ours = std::find_if(mappings->begin(), mappings->end(), [&](const FileMapping& m) {
    return m.inode == facts.st_ino && m.path == "/memfd:facts (deleted)";
  });
  ASSERT_NE(ours, mappings->end());
  EXPECT_EQ(ours->size, MiB(1));
}

TEST(ProcessFactsTest, ARunningProcessHasMemoryAndSwitches) {
  const auto resident = ResidentBytes(getpid());
  ASSERT_TRUE(resident.ok()) << resident.status();
  EXPECT_GT(*resident, KiB(100));
  EXPECT_TRUE(VoluntaryContextSwitches(getpid()).ok());
}

TEST(ProcessFactsTest, AProcessThatIsNotThereIsNotFound) {
  EXPECT_EQ(OpenDescriptorCount(kNobody).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ResidentBytes(kNobody).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(FileMappings(kNobody).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace heapbroker
