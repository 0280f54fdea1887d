// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_refusal.h"

#include <string>

#include "client/transport/refusal.h"
#include "google/rpc/status.pb.h"
#include "gtest/gtest.h"
#include "heapbroker/v1/broker.pb.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

v1::MemoryRefusal Message() {
  v1::MemoryRefusal message;
  message.set_never_fits(true);
  message.set_limit(v1::MemoryRefusal::LIMIT_DRIVER);
  message.set_heap_index(1);
  message.set_value(100);
  message.set_in_use(60);
  message.set_requested(50);
  message.set_largest_now(30);
  message.set_free(40);
  message.set_device_index(2);
  return message;
}

std::string Details(const google::protobuf::Message& detail) {
  google::rpc::Status status;
  status.add_details()->PackFrom(detail);
  return status.SerializeAsString();
}

absl::Status Refused(const std::string& details) {
  return WithRefusal(absl::ResourceExhaustedError("heap 1 is full"), details);
}

TEST(MemoryRefusalTest, HasAllThatTheDaemonSaid) {
  const absl::Status status = Refused(Details(Message()));
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, "heap 1 is full"));
  EXPECT_EQ(RefusalOf(status), (MemoryRefusal{.never_fits = true,
                                              .limit = MemoryRefusal::Limit::kDriver,
                                              .device_index = 2,
                                              .heap_index = 1,
                                              .value = 100,
                                              .in_use = 60,
                                              .requested = 50,
                                              .largest_now = 30,
                                              .free = 40}));
}

TEST(MemoryRefusalTest, ALimitThatIsNoHeapsHasNone) {
  v1::MemoryRefusal message = Message();
  message.set_limit(v1::MemoryRefusal::LIMIT_DESCRIPTORS);
  message.clear_heap_index();
  const std::optional<MemoryRefusal> refusal = RefusalOf(Refused(Details(message)));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->limit, MemoryRefusal::Limit::kDescriptors);
  EXPECT_FALSE(refusal->heap_index.has_value());
}

TEST(MemoryRefusalTest, ALimitOfANewerDaemonIsUnknown) {
  v1::MemoryRefusal message = Message();
  message.set_limit(static_cast<v1::MemoryRefusal::Limit>(99));
  ASSERT_TRUE(RefusalOf(Refused(Details(message))).has_value());
  EXPECT_EQ(RefusalOf(Refused(Details(message)))->limit, MemoryRefusal::Limit::kUnknown);
}

TEST(MemoryRefusalTest, IsFoundAmongOtherDetails) {
  google::rpc::Status details;
  details.add_details()->PackFrom(v1::GiveBack());
  details.add_details()->PackFrom(Message());
  ASSERT_TRUE(RefusalOf(Refused(details.SerializeAsString())).has_value());
}

TEST(MemoryRefusalTest, DetailsThatMakeNoSenseAreIgnored) {
  google::rpc::Status broken;
  google::protobuf::Any& detail = *broken.add_details();
  detail.set_type_url(kRefusalTypeUrl);
  detail.set_value("\xff\xff\xff");
  for (const std::string& details : {std::string(), std::string("\xff\xff\xff"),
                                     broken.SerializeAsString(), Details(v1::GiveBack())}) {
    const absl::Status status = Refused(details);
    EXPECT_FALSE(RefusalOf(status).has_value());
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted, "heap 1 is full"));
  }
}

TEST(MemoryRefusalTest, OtherErrorsAreNone) {
  EXPECT_FALSE(RefusalOf(absl::OkStatus()).has_value());
  EXPECT_FALSE(RefusalOf(absl::ResourceExhaustedError("no details")).has_value());
  EXPECT_FALSE(RefusalOf(WithRefusal(absl::InternalError("what"), Details(Message()))).has_value());
}

}  // namespace
}  // namespace heapbroker
