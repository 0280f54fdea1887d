// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/session_reports.h"

#include <thread>
#include <vector>

#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

class SessionReportsTest : public ServerFixture {
 protected:
  // What is idle in a client is believed up to what it holds.
  SessionReportsTest() { AllocateOne(session_, MiB(1).count()); }

  static IdleByDevice Idle(uint64_t bytes) { return {{{.heap = 0, .bytes = Bytes(bytes)}}}; }
  Bytes Known() const { return broker_.Stats().heaps[0].idle_in_clients; }

  const TestSession session_ = OpenClient();
  SessionReports reports_{devices_, session_.session.id};
};

TEST_F(SessionReportsTest, TellsTheCoreTheLatest) {
  reports_.Begin(1);
  EXPECT_EQ(Known(), Bytes());
  reports_.Report(1, Idle(1000));
  EXPECT_EQ(Known(), Bytes(1000));
  reports_.Report(1, Idle(10));
  EXPECT_EQ(Known(), Bytes(10));
  reports_.End(1);
  EXPECT_EQ(Known(), Bytes());
}

TEST_F(SessionReportsTest, AReplacedStreamIsNotHeardAndItsReportIsGone) {
  reports_.Begin(1);
  reports_.Report(1, Idle(1000));
  reports_.Begin(2);
  EXPECT_EQ(Known(), Bytes());
  reports_.Report(1, Idle(2000));
  EXPECT_EQ(Known(), Bytes());
  reports_.Report(2, Idle(10));
  reports_.End(1);
  EXPECT_EQ(Known(), Bytes(10));
}

TEST_F(SessionReportsTest, AStreamThatBeginsAfterItWasReplacedIsNotHeard) {
  reports_.Begin(2);
  reports_.Report(2, Idle(10));
  reports_.Begin(1);
  reports_.Report(1, Idle(2000));
  EXPECT_EQ(Known(), Bytes(10));
}

TEST_F(SessionReportsTest, NothingIsIdleAfterTheEndWhateverStillComes) {
  reports_.Begin(1);
  reports_.Report(1, Idle(1000));
  reports_.End(1);
  reports_.Report(1, Idle(1000));
  EXPECT_EQ(Known(), Bytes());
}

TEST_F(SessionReportsTest, StreamsOnManyThreadsLeaveNothingBehind) {
  std::vector<std::thread> threads;
  for (uint64_t stream = 1; stream <= 8; ++stream) {
    threads.emplace_back([this, stream] {
      reports_.Begin(stream);
      for (uint64_t i = 1; i <= 200; ++i) reports_.Report(stream, Idle(i));
      reports_.End(stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Known(), Bytes());
}

}  // namespace
}  // namespace heapbroker
