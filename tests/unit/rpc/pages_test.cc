// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/pages.h"

#include <algorithm>
#include <vector>

#include "common/base/clock.h"
#include "daemon/core/simulated_device.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/fakes/manual_executor.h"
#include "tests/fakes/recorded_events.h"

namespace heapbroker {
namespace {

constexpr SessionId kHoarder(1);
constexpr SessionId kModest(2);

class LeasePageTest : public testing::Test {
 protected:
  LeasePageTest() {
    for (SessionId session : {kHoarder, kModest}) {
      EXPECT_TRUE(broker_.AddSession(session, TenantId(1000)).ok());
    }
  }

  static LedgerOptions Options() {
    LedgerOptions options;
    options.admission.heaps = {{GiB(64)}};
    options.admission.count_limits = {{LimitKind::kMaxAllocationCount, 100'000}};
    return options;
  }
  void Lease(SessionId session, size_t count) {
    for (; count > 0; count -= std::min(count, kMaxBlocksPerCall)) {
      const std::vector<BlockRequest> blocks(std::min(count, kMaxBlocksPerCall),
                                             BlockRequest{.size = Bytes(1), .alignment = Bytes()});
      EXPECT_TRUE(broker_.Allocate(session, CallId(++last_call_), {.blocks = blocks}).ok());
      executor_.RunAll();
    }
  }

  RealClock clock_;
  SimulatedDevice device_;
  ManualExecutor executor_;
  RecordedEvents events_;
  FakeAlarm alarm_;
  DeviceBroker broker_{Options(), {device_, executor_, events_, clock_, alarm_}};
  uint64_t last_call_ = 0;
};

TEST_F(LeasePageTest, LooksThroughSoManyLeasesAtATimeAndGoesOnWhereItStopped) {
  Lease(kHoarder, 50'000);
  Lease(kModest, 1);
  int pages = 0;
  int found = 0;
  BlockId after;
  while (true) {
    LeasePage page(100, kModest);
    const bool all = page.AddFrom(broker_, after);
    const v1::ListLeasesResponse response = page.Take();
    ++pages;
    found += response.leases_size();
    EXPECT_EQ(all, response.next_page_token().empty());
    if (all) break;
    const absl::StatusOr<uint64_t> last = LastIdOf(response.next_page_token());
    ASSERT_TRUE(last.ok()) << last.status();
    ASSERT_GT(BlockId(*last), after);
    after = BlockId(*last);
  }
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(found, 1);
}

TEST_F(LeasePageTest, AFullPageThatIsTheLastSaysSo) {
  Lease(kHoarder, 10);
  LeasePage exact(10, SessionId());
  EXPECT_TRUE(exact.AddFrom(broker_, BlockId()));
  EXPECT_EQ(exact.Take().next_page_token(), "");
  LeasePage small(9, SessionId());
  EXPECT_FALSE(small.AddFrom(broker_, BlockId()));
  EXPECT_NE(small.Take().next_page_token(), "");
}

}  // namespace
}  // namespace heapbroker
