// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace heapbroker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kStart = 1'700'000'000;  // Seconds since 1970.

v1::SessionInfo Session(uint64_t id, const std::string& name, int32_t pid) {
  v1::SessionInfo session;
  session.set_session_id(id);
  session.set_name(name);
  session.set_pid(pid);
  session.set_uid(1001);
  session.mutable_start_time()->set_seconds(kStart);
  return session;
}

std::string ShowSession(const v1::SessionInfo& session) {
  v1::ListSessionsResponse sessions;
  *sessions.add_sessions() = session;
  return RenderSessions(sessions, absl::FromUnixSeconds(kStart));
}

TEST(RenderSessionsTest, LinesUpSessionsAndAddsThemUp) {
  v1::ListSessionsResponse sessions;
  *sessions.add_sessions() = Session(3, "digits", 4711);
  sessions.mutable_sessions(0)->set_leased_blocks(2);
  sessions.mutable_sessions(0)->set_leased_bytes(3 << 20);
  sessions.mutable_sessions(0)->set_attached_segments(1);
  *sessions.add_sessions() = Session(12, "trainer", 99);
  sessions.mutable_sessions(1)->set_leased_blocks(10);
  sessions.mutable_sessions(1)->set_leased_bytes(1000 << 10);
  EXPECT_EQ(RenderSessions(sessions, absl::FromUnixSeconds(kStart + 75)),
            "id  name      uid   pid         age  blocks       bytes  segments\n"
            " 3  digits   1001  4711  1 min 15 s       2     3.0 MiB         1\n"
            "12  trainer  1001    99  1 min 15 s      10  1000.0 KiB         0\n"
            "2 sessions, 12 blocks, 4.0 MiB\n");
}

TEST(RenderSessionsTest, AnEmptyListIsATotalOnly) {
  EXPECT_EQ(RenderSessions({}, absl::FromUnixSeconds(kStart)), "0 sessions\n");
}

TEST(RenderSessionsTest, AnUnknownPidDiffersFromAHiddenOne) {
  EXPECT_THAT(ShowSession(Session(1, "in-a-container", 0)), HasSubstr("unknown"));
  EXPECT_THAT(ShowSession(Session(1, "", 0)), Not(HasSubstr("unknown")));
}

TEST(RenderSessionsTest, ANameCannotSpeakToTheTerminal) {
  for (const char* name : {"\x1b[2J", "a\nb",
                           "\xc2\x9b"
                           "31m",
                           "\x80"}) {
    const std::string text = ShowSession(Session(1, name, 5));
    EXPECT_THAT(text, Not(HasSubstr(name)));
    EXPECT_THAT(text, HasSubstr("\\")) << "shown as an escape";
  }
}

TEST(RenderSessionsTest, ObserversAreMarked) {
  v1::SessionInfo session = Session(1, "heapbrokerctl", 5);
  session.set_observer(true);
  EXPECT_THAT(ShowSession(session), HasSubstr("heapbrokerctl (observer)"));
}

TEST(RenderSegmentsTest, ShowsStateAndChecksum) {
  v1::ListSegmentsResponse segments;
  v1::SegmentInfo& sealed = *segments.add_segments();
  sealed.set_segment_id(1);
  sealed.set_name("mnist");
  sealed.set_uid(1001);
  sealed.set_state(v1::SegmentInfo::STATE_SEALED);
  sealed.set_size(900 << 10);
  sealed.set_allocated_bytes(1 << 20);
  sealed.set_blocks(1);
  sealed.set_attached_sessions(4);
  sealed.mutable_checksum()->set_high(0x0123456789abcdef);
  sealed.mutable_checksum()->set_low(0xf);
  v1::SegmentInfo& filling = *segments.add_segments();
  filling.set_segment_id(2);
  filling.set_state(v1::SegmentInfo::STATE_FILLING);
  filling.set_attached_sessions(1);
  filling.set_waiting_calls(3);
  EXPECT_EQ(RenderSegments(segments),
            "id  name    uid  device  state         size  allocated  blocks  attached  waiting  "
            "checksum\n"
            " 1  mnist  1001       0  sealed   900.0 KiB    1.0 MiB       1         4        0  "
            "0123456789abcdef000000000000000f\n"
            " 2  -         0       0  filling        0 B        0 B       0         1        3  "
            "-\n"
            "2 segments, 1.0 MiB allocated\n");
}

TEST(RenderSegmentsTest, AStateOfANewerDaemonIsUnknown) {
  v1::ListSegmentsResponse segments;
  segments.add_segments()->set_state(static_cast<v1::SegmentInfo::State>(99));
  EXPECT_THAT(RenderSegments(segments), HasSubstr("unknown"));
}

v1::LeaseInfo LeaseOf(uint64_t block, const std::string& pool) {
  v1::LeaseInfo lease;
  lease.set_block_id(block);
  lease.set_session_id(3);
  lease.set_uid(1001);
  lease.set_handle_type(v1::HANDLE_TYPE_OPAQUE_FD);
  lease.set_pool(pool);
  lease.set_size(1000 << 10);
  lease.set_allocated_bytes(1 << 20);
  lease.mutable_start_time()->set_seconds(kStart);
  return lease;
}

TEST(RenderLeasesTest, LeavesOutWhatIsTheSameEverywhere) {
  v1::ListLeasesResponse leases;
  *leases.add_leases() = LeaseOf(7, "type 0");
  *leases.add_leases() = LeaseOf(12, "direct");
  EXPECT_EQ(RenderLeases(leases, absl::FromUnixSeconds(kStart + 75)),
            "block  session   uid  pool          size  allocated         age\n"
            "    7        3  1001  type 0  1000.0 KiB    1.0 MiB  1 min 15 s\n"
            "   12        3  1001  direct  1000.0 KiB    1.0 MiB  1 min 15 s\n"
            "2 leases, 2.0 MiB allocated\n");
}

TEST(RenderLeasesTest, TellsDevicesAndHandlesApartWhereTheyDiffer) {
  v1::ListLeasesResponse leases;
  *leases.add_leases() = LeaseOf(7, "type 0");
  *leases.add_leases() = LeaseOf(12, "type 0");
  leases.mutable_leases(1)->set_device_index(1);
  leases.mutable_leases(1)->set_handle_type(v1::HANDLE_TYPE_DMA_BUF);
  EXPECT_EQ(RenderLeases(leases, absl::FromUnixSeconds(kStart)),
            "block  session   uid  device  handle     pool          size  allocated  age\n"
            "    7        3  1001       0  opaque fd  type 0  1000.0 KiB    1.0 MiB  0 s\n"
            "   12        3  1001       1  dma-buf    type 0  1000.0 KiB    1.0 MiB  0 s\n"
            "2 leases, 2.0 MiB allocated\n");
}

TEST(RenderLeasesTest, AnEmptyListIsATotalOnly) {
  EXPECT_EQ(RenderLeases({}, absl::FromUnixSeconds(kStart)), "0 leases\n");
}

TEST(RenderTrimTest, SaysWhatIsOnItsWay) {
  v1::TrimResponse trimmed;
  EXPECT_EQ(RenderTrim(trimmed), "nothing to free\n");
  trimmed.set_blocks(1);
  trimmed.set_bytes(3 << 20);
  EXPECT_EQ(RenderTrim(trimmed), "freeing 1 block, 3.0 MiB\n");
}

TEST(RenderHealthTest, UsesTheProtocolsWords) {
  grpc::health::v1::HealthCheckResponse health;
  health.set_status(grpc::health::v1::HealthCheckResponse::SERVING);
  EXPECT_EQ(RenderHealth(health), "SERVING\n");
  health.set_status(grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(RenderHealth(health), "NOT_SERVING\n");
}

TEST(RenderJsonTest, UsesTheNamesOfTheProtoFilesAndWritesZeros) {
  v1::ListSegmentsResponse segments;
  segments.add_segments()->set_allocated_bytes(uint64_t{1} << 60);
  const auto json = RenderJson(segments);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_THAT(*json, HasSubstr("\"allocated_bytes\": \"1152921504606846976\""));
  EXPECT_THAT(*json, HasSubstr("\"waiting_calls\": 0"));
  EXPECT_THAT(*json, HasSubstr("\"next_page_token\": \"\""));
}

TEST(RenderJsonTest, AStreamHasALineForEachReply) {
  v1::GetStatsResponse stats;
  stats.set_version("a\nb");
  stats.add_devices();
  const auto json = RenderJson(stats, JsonStyle::kLine);
  ASSERT_TRUE(json.ok()) << json.status();
  EXPECT_EQ(json->find('\n'), json->size() - 1);
}

}  // namespace
}  // namespace heapbroker
