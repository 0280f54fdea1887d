// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/request_ids.h"

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

constexpr SessionId kSession{1};
constexpr CallId kCall{10}, kLater{11};

AllocateRequest RequestOf(uint64_t id, Bytes size) {
  AllocateRequest request;
  request.request_id = RequestId(id);
  request.blocks.resize(1);
  request.blocks[0].size = size;
  return request;
}

Grant GrantOf(std::initializer_list<uint64_t> blocks) {
  Grant grant;
  for (uint64_t id : blocks) grant.blocks.push_back({BlockId(id), MiB(1), MiB(1), {}});
  return grant;
}

class RequestIdsTest : public ::testing::Test {
 protected:
  bool IsNew(const AllocateRequest& request, SessionId session = kSession) const {
    const auto found = ids_.Find(session, request);
    EXPECT_THAT(found, IsOk());
    return found.ok() && !found->has_value();
  }

  RequestIds ids_;
  const AllocateRequest request_ = RequestOf(5, MiB(1));
};

TEST_F(RequestIdsTest, RemembersTheCallOfARequestThatWaits) {
  EXPECT_TRUE(IsNew(request_));
  ids_.Wait(kSession, request_, kCall);
  auto found = ids_.Find(kSession, request_);
  ASSERT_THAT(found, IsOk());
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ(std::get<RequestIds::Pending>(**found).call, kCall);
  ids_.Wait(kSession, request_, kLater);
  found = ids_.Find(kSession, request_);
  EXPECT_EQ(std::get<RequestIds::Pending>(**found).call, kLater);
  EXPECT_TRUE(IsNew(request_, SessionId(2)));
}

TEST_F(RequestIdsTest, RemembersAGrantUntilAllOfItIsReleased) {
  ids_.Wait(kSession, request_, kCall);
  ids_.Granted(kSession, RequestId(5), GrantOf({1, 2}));
  const auto found = ids_.Find(kSession, request_);
  ASSERT_THAT(found, IsOk());
  EXPECT_EQ(std::get<Grant>(**found).blocks.size(), 2u);
  ids_.Released(kSession, RequestId(5), BlockId(1));
  EXPECT_THAT(ids_.Find(kSession, request_),
              StatusIs(StatusCode::kFailedPrecondition, "request_id: of what 5 was granted"));
  ids_.Released(kSession, RequestId(5), BlockId(2));
  EXPECT_TRUE(IsNew(request_));
}

TEST_F(RequestIdsTest, ForgetsARequestThatGotNothing) {
  ids_.Wait(kSession, request_, kCall);
  ids_.Failed(kSession, RequestId(5));
  EXPECT_TRUE(IsNew(request_));
}

TEST_F(RequestIdsTest, RefusesAnotherRequestUnderTheSameId) {
  ids_.Wait(kSession, request_, kCall);
  std::vector<AllocateRequest> others(8, request_);
  others[0].blocks[0].size = MiB(2);
  others[1].blocks[0].alignment = Bytes(16);
  others[2].blocks[0].memory = MemoryKind::kHostVisible;
  others[3].blocks[0].memory = MemoryTypeIndex{0};
  others[4].blocks[0].handle_type = HandleType::kDmaBuf;
  others[5].blocks[0].zeroed = true;
  others[6].blocks[0].dedicated = true;
  others[7].blocks.push_back(request_.blocks[0]);
  for (const AllocateRequest& other : others) {
    EXPECT_THAT(ids_.Find(kSession, other), StatusIs(StatusCode::kInvalidArgument, "request_id"));
  }
}

TEST_F(RequestIdsTest, HowLongItMayWaitAndItsPriorityDoNotMakeItAnother) {
  ids_.Wait(kSession, request_, kCall);
  AllocateRequest again = request_;
  again.priority = Priority::kHigh;
  again.wait_until = absl::UnixEpoch();
  EXPECT_FALSE(IsNew(again));
}

TEST_F(RequestIdsTest, ForgetsASessionThatHasEndedAndNoOther) {
  ids_.Wait(kSession, request_, kCall);
  ids_.Wait(kSession, RequestOf(UINT64_MAX, MiB(1)), kCall);
  ids_.Wait(SessionId(2), request_, kCall);
  ids_.EndSession(kSession);
  EXPECT_TRUE(IsNew(request_));
  EXPECT_TRUE(IsNew(RequestOf(UINT64_MAX, MiB(1))));
  EXPECT_FALSE(IsNew(request_, SessionId(2)));
}

TEST_F(RequestIdsTest, AnUnsetIdIsAlwaysNew) {
  const AllocateRequest unset = RequestOf(0, MiB(1));
  ids_.Wait(kSession, unset, kCall);
  ids_.Granted(kSession, RequestId(), GrantOf({1}));
  EXPECT_TRUE(IsNew(unset));
  EXPECT_THAT(ids_.Undo(kSession, RequestId()), StatusIs(StatusCode::kInvalidArgument, "is 0"));
}

TEST_F(RequestIdsTest, UndoingIsOfTheCallOrOfWhatIsStillHeld) {
  EXPECT_THAT(ids_.Undo(kSession, RequestId(5)), StatusIs(StatusCode::kNotFound, "request 5"));
  ids_.Wait(kSession, request_, kCall);
  ASSERT_OK_AND_ASSIGN(RequestIds::ToUndo undo, ids_.Undo(kSession, RequestId(5)));
  EXPECT_EQ(undo.call, kCall);
  ids_.Granted(kSession, RequestId(5), GrantOf({1, 2}));
  ids_.Released(kSession, RequestId(5), BlockId(1));
  ASSERT_OK_AND_ASSIGN(undo, ids_.Undo(kSession, RequestId(5)));
  EXPECT_FALSE(undo.call.has_value());
  EXPECT_EQ(undo.blocks, std::vector<BlockId>{BlockId(2)});
}

}  // namespace
}  // namespace heapbroker
