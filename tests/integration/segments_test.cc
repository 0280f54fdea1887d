// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One copy of named contents for all processes: who writes it, and what the
// others get.
#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"

namespace heapbroker {
namespace {

class SegmentsTest : public DaemonFixture {};

TEST_F(SegmentsTest, OfTwoProcessesThatRaceExactlyOneWrites) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto one = StartClient("one");
  const auto two = StartClient("two");
  ASSERT_TRUE(one != nullptr && two != nullptr);
  int rounds_of_one = 0;
  for (int round = 0; round < 20; ++round) {
    // Whoever writes fills it with the seed; both check that they see the seed.
    const std::string command = absl::StrCat("load weights", round, " 300000 ", round);
    // Each goes first in half of the rounds.
    ClientProcess& first = round % 2 == 0 ? *one : *two;
    ClientProcess& second = round % 2 == 0 ? *two : *one;
    ASSERT_THAT(first.Send(command), IsOk());
    ASSERT_THAT(second.Send(command), IsOk());
    ASSERT_OK_AND_ASSIGN(const std::string by_one, one->Answer());
    ASSERT_OK_AND_ASSIGN(const std::string by_two, two->Answer());
    EXPECT_EQ(NumberOf(by_one, "writer") + NumberOf(by_two, "writer"), 1u) << round;
    EXPECT_EQ(FieldOf(by_one, "blocks"), FieldOf(by_two, "blocks")) << round;
    rounds_of_one += NumberOf(by_one, "writer") == 1;
  }
  // The other ones were written by `two`: both have seen the other's bytes.
  EXPECT_GT(rounds_of_one, 0);
  EXPECT_LT(rounds_of_one, 20);
}

TEST_F(SegmentsTest, ManyProcessesImportOneSegmentAtTheSameTime) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  std::vector<std::unique_ptr<ClientProcess>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(StartClient(absl::StrCat("client", i)));
    ASSERT_TRUE(clients.back() != nullptr);
  }
  // All were sent the same open file, and a driver may use its offset.
  for (int round = 0; round < 30; ++round) {
    const std::string command = absl::StrCat("load weights", round, " 100000 ", round);
    for (const auto& client : clients) ASSERT_THAT(client->Send(command), IsOk());
    for (const auto& client : clients) ASSERT_THAT(client->Answer(), IsOk()) << round;
  }
}

TEST_F(SegmentsTest, AWaiterFinishesOnFreshBlocksWhatAKilledWriterBegan) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon({"--clear=always"}));
  const auto writer = StartClient("writer");
  std::vector<std::unique_ptr<ClientProcess>> waiters;
  for (int i = 0; i < 2; ++i) waiters.push_back(StartClient(absl::StrCat("waiter", i)));
  ASSERT_TRUE(writer != nullptr && waiters[0] != nullptr && waiters[1] != nullptr);
  ASSERT_OK_AND_ASSIGN(const std::string begun, writer->Ask("open s weights 4000000"));
  ASSERT_EQ(NumberOf(begun, "writer"), 1u);
  ASSERT_OK_AND_ASSIGN(const std::string begun_memory, writer->Ask("fetch s"));
  ASSERT_THAT(writer->Ask("fill s 0 2000000 1"), IsOk());
  // One after the other, so that it is known who is next.
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_THAT(waiters[i]->Send("open s weights 4000000"), IsOk());
    ASSERT_TRUE(WaitFor([&] { return WaitingSessions() == i + 1; }));
  }
  EXPECT_FALSE(waiters[0]->HasAnswer());

  ASSERT_THAT(writer->process().Signal(SIGKILL), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string taken_over, waiters[0]->Answer());
  EXPECT_EQ(NumberOf(taken_over, "writer"), 1u);
  ASSERT_OK_AND_ASSIGN(const std::string fresh_memory, waiters[0]->Ask("fetch s"));
  EXPECT_NE(fresh_memory, begun_memory);
  EXPECT_THAT(waiters[0]->Ask("zeros s"), IsOk());
  EXPECT_FALSE(waiters[1]->HasAnswer());

  ASSERT_THAT(waiters[0]->Ask("fill s 0 4000000 2"), IsOk());
  ASSERT_THAT(waiters[0]->Ask("seal s"), IsOk());
  ASSERT_OK_AND_ASSIGN(const std::string attached, waiters[1]->Answer());
  EXPECT_EQ(NumberOf(attached, "writer"), 0u);
  EXPECT_EQ(waiters[1]->Ask("fetch s").value_or(""), fresh_memory);
  EXPECT_THAT(waiters[1]->Ask("check s 0 4000000 2"), IsOk());
}

TEST_F(SegmentsTest, WhatIsLargerThanABlockIsSeveralBlocks) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon({"--heap-budget=6GiB"}));
  const v1::GetStatsResponse stats = Stats();
  ASSERT_GT(stats.devices_size(), 0);
  const uint64_t largest = stats.devices(0).device().max_allocation_size();
  const uint64_t size = uint64_t{5} << 30;
  if (largest >= size) GTEST_SKIP() << "this device has larger blocks: " << largest;
  const auto writer = StartClient("writer");
  const auto reader = StartClient("reader");
  ASSERT_TRUE(writer != nullptr && reader != nullptr);

  ASSERT_OK_AND_ASSIGN(const std::string opened, writer->Ask(absl::StrCat("open s large ", size)));
  const std::vector<std::string> blocks = absl::StrSplit(FieldOf(opened, "blocks"), ',');
  EXPECT_EQ(blocks.size(), (size + largest - 1) / largest);
  EXPECT_EQ(NumberOf(opened, "bytes"), size);
  // Only some pages are ever touched: at the ends, and across the blocks' borders.
  std::vector<uint64_t> places = {0, size - 8192};
  for (uint64_t border = largest; border < size; border += largest) {
    places.push_back(border - 4096);
  }
  for (uint64_t place : places) {
    EXPECT_THAT(writer->Ask(absl::StrCat("fill s ", place, " 8192 9")), IsOk());
  }
  ASSERT_THAT(writer->Ask("seal-unread s"), IsOk());

  ASSERT_OK_AND_ASSIGN(const std::string attached, reader->Ask("attach s large"));
  EXPECT_EQ(FieldOf(attached, "blocks"), FieldOf(opened, "blocks"));
  for (uint64_t place : places) {
    EXPECT_THAT(reader->Ask(absl::StrCat("check s ", place, " 8192 9")), IsOk());
  }
}

TEST_F(SegmentsTest, SealedContentsStayForTheNextProcess) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto writer = StartClient("writer");
  ASSERT_TRUE(writer != nullptr);
  ASSERT_OK_AND_ASSIGN(const std::string written, writer->Ask("load weights 100000 5"));
  ASSERT_OK_AND_ASSIGN(const ExitStatus ended, writer->Quit());
  EXPECT_EQ(ended, Exited(0));

  const auto reader = StartClient("reader");
  ASSERT_TRUE(reader != nullptr);
  ASSERT_OK_AND_ASSIGN(const std::string read, reader->Ask("load weights 100000 5"));
  EXPECT_EQ(NumberOf(read, "writer"), 0u);
  EXPECT_EQ(FieldOf(read, "blocks"), FieldOf(written, "blocks"));
}

}  // namespace
}  // namespace heapbroker
