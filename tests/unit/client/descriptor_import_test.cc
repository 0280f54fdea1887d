// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/descriptor_import.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "common/posix/unique_fd.h"
#include "gtest/gtest.h"
#include "tests/support/process_facts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

size_t DescriptorCount() { return OpenDescriptorCount(getpid()).value(); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

// Two opens of one device node: equal to fstat, different open files.
UniqueFd OpenDeviceNode() { return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC)); }

class FixedAnswer final : public OpenFileComparer {
 public:
  explicit FixedAnswer(Answer answer) : answer_(answer) {}
  Answer Compare(int, int) override { return answer_; }

 private:
  const Answer answer_;
};

const absl::Status kRefused = absl::InternalError("the driver refused");

TEST(KcmpComparerTest, TellsOpenFilesApart) {
  KcmpComparer kcmp;
  const UniqueFd file = OpenDeviceNode();
  const UniqueFd same = DuplicateFd(file.get()).value();
  const UniqueFd other = OpenDeviceNode();
  EXPECT_EQ(kcmp.Compare(file.get(), same.get()), OpenFileComparer::Answer::kSame);
  EXPECT_EQ(kcmp.Compare(file.get(), other.get()), OpenFileComparer::Answer::kDifferent);
  EXPECT_EQ(kcmp.Compare(file.get(), 1'000'000), OpenFileComparer::Answer::kNotOpen);
}

TEST(DescriptorImporterTest, GivesTheDriverACloseOnExecDuplicateAndKeepsTheOriginal) {
  KcmpComparer kcmp;
  DescriptorImporter importer(kcmp);
  const UniqueFd original = OpenDeviceNode();
  UniqueFd taken;
  ASSERT_THAT(importer.Import(original.get(), CallLimits(),
                              [&](int duplicate) {
                                EXPECT_NE(duplicate, original.get());
                                EXPECT_EQ(fcntl(duplicate, F_GETFD), FD_CLOEXEC);
                                taken.Reset(duplicate);
                                return absl::OkStatus();
                              }),
              IsOk());
  EXPECT_TRUE(IsOpen(original.get()));
  EXPECT_TRUE(IsOpen(taken.get()));
  EXPECT_EQ(importer.failed(), 0u);
}

TEST(DescriptorImporterTest, GivesTheDriverOfAMemoryFileAnOffsetThatNobodyElseMoves) {
  KcmpComparer kcmp;
  DescriptorImporter importer(kcmp);
  const UniqueFd original(memfd_create("block", MFD_CLOEXEC));
  ASSERT_EQ(write(original.get(), "header", 6), 6);
  EXPECT_THAT(importer.Import(original.get(), CallLimits(),
                              [&](int duplicate) {
                                // Another process, which was sent the same open file, reads.
                                EXPECT_EQ(lseek(duplicate, 0, SEEK_SET), 0);
                                EXPECT_EQ(lseek(original.get(), 4, SEEK_SET), 4);
                                char text[6] = {};
                                EXPECT_EQ(read(duplicate, text, 6), 6);
                                close(duplicate);
                                return absl::OkStatus();
                              }),
              IsOk());
}

TEST(DescriptorImporterTest, ClosesTheDuplicateOfADriverThatFailsAndKeepsItOpen) {
  KcmpComparer kcmp;
  DescriptorImporter importer(kcmp);
  const UniqueFd original = OpenDeviceNode();
  const size_t before = DescriptorCount();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(importer.Import(original.get(), CallLimits(), [](int) { return kRefused; }),
              kRefused);
  }
  EXPECT_EQ(DescriptorCount(), before);
  EXPECT_EQ(importer.failed(), 1000u);
  EXPECT_EQ(importer.leaked(), 0u);
}

TEST(DescriptorImporterTest, AcceptsADriverThatFailsAndClosesIt) {
  KcmpComparer kcmp;
  DescriptorImporter importer(kcmp);
  const UniqueFd original = OpenDeviceNode();
  const size_t before = DescriptorCount();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(importer.Import(original.get(), CallLimits(),
                              [](int duplicate) {
                                close(duplicate);
                                return kRefused;
                              }),
              kRefused);
  }
  EXPECT_EQ(DescriptorCount(), before);
  EXPECT_TRUE(IsOpen(original.get()));
  EXPECT_EQ(importer.leaked(), 0u);
}

TEST(DescriptorImporterTest, DoesNotCloseAForeignFileThatGotTheNumber) {
  KcmpComparer kcmp;
  DescriptorImporter importer(kcmp);
  const UniqueFd original = OpenDeviceNode();
  UniqueFd foreign;
  EXPECT_EQ(importer.Import(original.get(), CallLimits(),
                            [&](int duplicate) {
                              // Another thread opens a file just after the driver closed it.
                              close(duplicate);
                              foreign = OpenDeviceNode();
                              EXPECT_EQ(foreign.get(), duplicate);
                              return kRefused;
                            }),
            kRefused);
  EXPECT_TRUE(IsOpen(foreign.get()));
  EXPECT_EQ(importer.leaked(), 0u);
}

TEST(DescriptorImporterTest, DoesNotCloseWhatAnotherImporterGotUnderTheNumber) {
  KcmpComparer kcmp;
  DescriptorImporter failing(kcmp), other(kcmp);
  const UniqueFd original = OpenDeviceNode();
  UniqueFd taken;
  std::atomic<bool> imported = false;
  std::thread thread;
  EXPECT_EQ(failing.Import(original.get(), CallLimits(),
                           [&](int duplicate) {
                             close(duplicate);
                             thread = std::thread([&] {
                               EXPECT_THAT(other.Import(original.get(), CallLimits(),
                                                        [&](int second) {
                                                          taken.Reset(second);
                                                          imported = true;
                                                          return absl::OkStatus();
                                                        }),
                                           IsOk());
                             });
                             // Were it not to wait, this would be time enough.
                             WaitFor([&] { return imported.load(); }, absl::Milliseconds(200));
                             return kRefused;
                           }),
            kRefused);
  thread.join();
  EXPECT_TRUE(IsOpen(taken.get()));
}

TEST(DescriptorImporterTest, AForkedChildDoesNotWaitForItsParentsImport) {
  KcmpComparer kcmp;
  DescriptorImporter importer(kcmp);
  const UniqueFd original = OpenDeviceNode();
  EXPECT_EQ(importer.Import(original.get(), CallLimits(),
                            [&](int) {
                              const pid_t child = fork();
                              if (child == 0) {
                                alarm(10);
                                const absl::Status status = importer.Import(
                                    original.get(), CallLimits(), [](int) { return kRefused; });
                                _exit(status == kRefused ? 0 : 1);
                              }
                              int status = 0;
                              EXPECT_EQ(waitpid(child, &status, 0), child);
                              EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
                              return kRefused;
                            }),
            kRefused);
}

TEST(DescriptorImporterTest, LeaksAndCountsWhenTheKernelDoesNotSay) {
  FixedAnswer unknown(OpenFileComparer::Answer::kUnknown);
  DescriptorImporter importer(unknown);
  const UniqueFd original = OpenDeviceNode();
  UniqueFd leaked;
  EXPECT_EQ(importer.Import(original.get(), CallLimits(),
                            [&](int duplicate) {
                              leaked.Reset(duplicate);
                              return kRefused;
                            }),
            kRefused);
  EXPECT_TRUE(IsOpen(leaked.get()));
  EXPECT_EQ(importer.leaked(), 1u);
}

TEST(DescriptorImporterTest, DoesNotCallTheDriverWithoutADuplicate) {
  KcmpComparer kcmp;
  DescriptorImporter importer(kcmp);
  EXPECT_THAT(importer.Import(1'000'000, CallLimits(),
                              [](int) {
                                ADD_FAILURE() << "called";
                                return absl::OkStatus();
                              }),
              StatusIs(absl::StatusCode::kInvalidArgument, ""));
  EXPECT_EQ(importer.failed(), 0u);
}

}  // namespace
}  // namespace heapbroker
