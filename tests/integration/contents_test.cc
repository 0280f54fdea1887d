// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a process finds in the memory that it gets.
#include <csignal>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"

namespace heapbroker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ContentsTest : public DaemonFixture {};

TEST_F(ContentsTest, AnotherProcessOfTheTenantReadsWhatTheLastOneLeft) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto writer = StartClient("writer");
  const auto reader = StartClient("reader");
  ASSERT_TRUE(writer != nullptr && reader != nullptr);

  ASSERT_THAT(writer->Ask("allocate a 1000000"), IsOk());
  ASSERT_THAT(writer->Ask("fill a 0 1000000 7"), IsOk());
  ASSERT_THAT(writer->Ask("give-back a"), IsOk());

  ASSERT_THAT(reader->Ask("allocate b 1000000"), IsOk());
  EXPECT_EQ(Hits(), 1u);
  EXPECT_THAT(reader->Ask("check b 0 1000000 7"), IsOk());
  // The check is one that can fail.
  EXPECT_THAT(reader->Ask("check b 0 1000000 8"), StatusIs(absl::StatusCode::kDataLoss, "byte "));
}

TEST_F(ContentsTest, AReusedBlockReadsZerosForWhoeverAsksForThem) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto writer = StartClient("writer");
  const auto reader = StartClient("reader");
  ASSERT_TRUE(writer != nullptr && reader != nullptr);

  ASSERT_THAT(writer->Ask("allocate a 1000000"), IsOk());
  ASSERT_THAT(writer->Ask("fill a 0 1000000 7"), IsOk());
  EXPECT_THAT(writer->Ask("zeros a"), StatusIs(absl::StatusCode::kDataLoss, "byte "));
  ASSERT_THAT(writer->Ask("give-back a"), IsOk());

  ASSERT_THAT(reader->Ask("allocate b 1000000 zeroed"), IsOk());
  EXPECT_EQ(Hits(), 1u);
  EXPECT_THAT(reader->Ask("zeros b"), IsOk());
}

TEST_F(ContentsTest, FreshMemoryIsZeroAfterAnotherSessionFilledItAndDied) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon({"--clear=always"}));
  const auto writer = StartClient("writer");
  const auto reader = StartClient("reader");
  ASSERT_TRUE(writer != nullptr && reader != nullptr);

  ASSERT_THAT(writer->Ask("allocate a 16777216"), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string written, writer->Ask("fetch a"));
  ASSERT_THAT(writer->Ask("fill a 0 16777216 165"), IsOk());
  ASSERT_THAT(writer->process().Signal(SIGKILL), IsOk());
  ASSERT_TRUE(WaitFor([&] { return Held().allocations == 0; }));

  ASSERT_THAT(reader->Ask("allocate b 16777216"), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string read, reader->Ask("fetch b"));
  EXPECT_NE(read, written);
  EXPECT_THAT(reader->Ask("zeros b"), IsOk());
}

// A segment is how two processes hold one block; nothing but the contract of sealed
// ones, which this test breaks, keeps the second from writing.
TEST_F(ContentsTest, TwoRangesOfOneBlockWrittenByTwoProcessesDoNotOverlap) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto one = StartClient("one");
  const auto other = StartClient("other");
  ASSERT_TRUE(one != nullptr && other != nullptr);
  ASSERT_THAT(one->Ask("open s shared 1000000"), IsOk());
  ASSERT_THAT(one->Ask("fill s 0 1000000 1"), IsOk());
  ASSERT_THAT(one->Ask("seal-unread s"), IsOk());
  ASSERT_THAT(other->Ask("attach s shared"), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string files, one->Ask("fetch s"));
  ASSERT_EQ(other->Ask("fetch s").value(), files);
  EXPECT_THAT(files, Not(HasSubstr(","))) << "more than one block";

  // Neither begins or ends at a page, and between them one byte is nobody's.
  ASSERT_THAT(one->Ask("fill s 333 444444 2"), IsOk());
  ASSERT_THAT(other->Ask("fill s 444778 500000 3"), IsOk());
  ASSERT_THAT(one->Ask("fill s 333 444444 4"), IsOk());
  for (const auto& process : {one.get(), other.get()}) {
    EXPECT_THAT(process->Ask("check s 0 333 1"), IsOk());
    EXPECT_THAT(process->Ask("check s 333 444444 4"), IsOk());
    EXPECT_THAT(process->Ask("check s 444777 1 1"), IsOk());
    EXPECT_THAT(process->Ask("check s 444778 500000 3"), IsOk());
    EXPECT_THAT(process->Ask("check s 944778 55222 1"), IsOk());
  }
}

TEST_F(ContentsTest, TheDeviceOfOneProcessReadsWhatTheHostOfAnotherWrote) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto writer = StartClient("writer");
  const auto copier = StartClient("copier");
  ASSERT_TRUE(writer != nullptr && copier != nullptr);
  ASSERT_THAT(writer->Ask("open s shared 500000"), IsOk());
  ASSERT_THAT(writer->Ask("fill s 0 500000 3"), IsOk());
  ASSERT_THAT(writer->Ask("seal s"), IsOk());

  ASSERT_THAT(copier->Ask("attach s shared"), IsOk());
  ASSERT_THAT(copier->Ask("allocate target 500000 zeroed"), IsOk());
  ASSERT_THAT(copier->Ask("copy s target"), IsOk());
  EXPECT_THAT(copier->Ask("check target 0 500000 3"), IsOk());
}

}  // namespace
}  // namespace heapbroker
