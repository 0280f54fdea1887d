// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/messages/parse.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heapbroker/v1/broker.pb.h"
#include "heapbroker/v1/session.pb.h"

namespace heapbroker {
namespace {

using testing::HasSubstr;

// What protobuf writes too: the serializer does not refuse bad text in a release
// build, but says so on standard error, so these are made by hand.
std::string LengthDelimited(int field, const std::string& value) {
  std::string bytes;
  bytes.push_back(static_cast<char>(field << 3 | 2));
  bytes.push_back(static_cast<char>(value.size()));  // Under 128 bytes.
  return bytes + value;
}

TEST(ParseMessageTest, ReadsWhatWasWritten) {
  v1::SessionRequest request;
  request.mutable_hello()->set_name("Größe ✓ 🙂");
  request.mutable_hello()->set_protocol_major(1);
  v1::SessionRequest parsed;
  ASSERT_TRUE(ParseMessage(request.SerializeAsString(), parsed).ok());
  EXPECT_EQ(parsed.SerializeAsString(), request.SerializeAsString());
}

TEST(ParseMessageTest, ReplacesWhatTheMessageHeld) {
  v1::OpenSegmentRequest message;
  message.set_name("before");
  ASSERT_TRUE(ParseMessage("", message).ok());
  EXPECT_EQ(message.name(), "");
}

TEST(ParseMessageTest, NamesAFieldThatIsNotUtf8) {
  v1::OpenSegmentRequest message;
  const absl::Status status = ParseMessage(LengthDelimited(1, "abc\xff"), message);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "name: is not valid UTF-8 at byte 3");
}

TEST(ParseMessageTest, NamesAFieldInsideAnother) {
  const std::string hello = std::string("\x08\x01") + LengthDelimited(3, "\xc3\x28");
  v1::SessionRequest message;
  const absl::Status status = ParseMessage(LengthDelimited(1, hello), message);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "hello.name: is not valid UTF-8 at byte 0");
}

TEST(ParseMessageTest, RefusesEachTextThatProtobufRefusesBeforeProtobufSeesIt) {
  for (const char* text : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x9c"}) {
    v1::OpenSegmentRequest message;
    testing::internal::CaptureStderr();
    EXPECT_FALSE(ParseMessage(LengthDelimited(1, text), message).ok());
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  }
}

TEST(ParseMessageTest, LeavesBytesFieldsAlone) {
  v1::SessionReply reply;
  reply.mutable_welcome()->set_token("\xff\xfe");
  v1::SessionReply parsed;
  EXPECT_TRUE(ParseMessage(reply.SerializeAsString(), parsed).ok());
}

TEST(ParseMessageTest, IgnoresUnknownFieldsWhateverTheyHold) {
  v1::CloseSegmentRequest message;
  EXPECT_TRUE(ParseMessage(LengthDelimited(15, "\xff\xff"), message).ok());
  // `name` as a number is unknown to protobuf as well.
  v1::OpenSegmentRequest open;
  EXPECT_TRUE(ParseMessage(std::string("\x08\x05"), open).ok());
}

TEST(ParseMessageTest, RefusesWhatIsNoMessage) {
  const std::string good = LengthDelimited(1, LengthDelimited(3, "name"));
  for (size_t length = 1; length < good.size(); ++length) {
    v1::SessionRequest message;
    const absl::Status status = ParseMessage(good.substr(0, length), message);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << length;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("not a valid heapbroker.v1.SessionRequest message"));
  }
}

TEST(ParseMessageTest, RefusesLengthsPastTheEnd) {
  for (const char* bytes : {"\x0a\x7f"
                            "abc",
                            "\x0a\xff\xff\xff\xff\x0f"
                            "abc",
                            "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x0f", "\x0c"}) {
    v1::OpenSegmentRequest message;
    EXPECT_EQ(ParseMessage(bytes, message).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(ParseMessageTest, SurvivesGroupsNestedWithoutEnd) {
  v1::OpenSegmentRequest message;
  EXPECT_EQ(ParseMessage(std::string(60'000, '\x7b'), message).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace heapbroker
