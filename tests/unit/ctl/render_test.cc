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

TEST(FormatAgeTest, UsesTheTwoLargestUnits) {
  EXPECT_EQ(FormatAge(absl::Seconds(-5)), "0 s");
  EXPECT_EQ(FormatAge(absl::Seconds(59)), "59 s");
  EXPECT_EQ(FormatAge(absl::Seconds(60)), "1 min 0 s");
  EXPECT_EQ(FormatAge(absl::Minutes(60 * 5 + 2)), "5 h 2 min");
  EXPECT_EQ(FormatAge(absl::Hours(76)), "3 d 4 h");
}

TEST(FormatRateTest, NothingOfNothingIsNoRate) {
  EXPECT_EQ(FormatRate(0, 0), "-");
  EXPECT_EQ(FormatRate(12, 13), "92.3 %");
}

}  // namespace
}  // namespace heapbroker
