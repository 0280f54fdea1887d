// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Admin over the wire.
#include "daemon/rpc/admin_service.h"

#include <string>

#include "gmock/gmock.h"
#include "tests/support/wait_for.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class AdminServiceTest : public ServerFixture {
 protected:
  AdminServiceTest() : ServerFixture(2) {}

  grpc::Status Trim(CallContext&& context, const v1::TrimRequest& request = {}) {
    return admin_->Trim(context.get(), request, &response_);
  }
  // Leaves a block of `size` idle on the device.
  uint64_t LeaveIdle(uint32_t device, uint64_t size) {
    const v1::Block block = AllocateOne(client_, size, device);
    EXPECT_TRUE(Release(client_, {block.block_id()}).ok());
    return block.allocation_size();
  }
  static uint64_t IdleBlocks(const DeviceBroker& device) {
    return device.Stats().pools[0].idle_blocks;
  }

  const TestSession client_ = OpenClient();
  const TestSession root_ = OpenObserver(0);
  v1::TrimResponse response_;
};

TEST_F(AdminServiceTest, TrimsEveryDeviceUnlessOneIsNamed) {
  const uint64_t first = LeaveIdle(0, 100'000);
  const uint64_t second = LeaveIdle(1, 200'000);
  v1::TrimRequest request;
  request.set_device_index(1);
  ASSERT_TRUE(Trim(CallContext(root_), request).ok());
  EXPECT_EQ(response_.bytes(), second);
  EXPECT_EQ(response_.blocks(), 1u);
  EXPECT_EQ(IdleBlocks(broker_), 1u);
  EXPECT_EQ(IdleBlocks(second_broker_), 0u);
  LeaveIdle(1, 200'000);
  ASSERT_TRUE(Trim(CallContext(root_)).ok());
  EXPECT_EQ(response_.bytes(), first + second);
  EXPECT_EQ(response_.blocks(), 2u);
  EXPECT_EQ(IdleBlocks(broker_) + IdleBlocks(second_broker_), 0u);
}

TEST_F(AdminServiceTest, NeverTouchesWhatIsLeased) {
  AllocateOne(client_, 100'000);
  ASSERT_TRUE(Trim(CallContext(root_)).ok());
  EXPECT_EQ(response_.blocks(), 0u);
  EXPECT_EQ(broker_.Holdings(client_.session.id).leased_blocks, 1u);
}

TEST_F(AdminServiceTest, IsForRootAndTheDaemonsUserInAnySession) {
  EXPECT_TRUE(Trim(CallContext(OpenObserver(kDaemonUid))).ok());
  EXPECT_TRUE(Trim(CallContext(OpenClient(0))).ok());
  LeaveIdle(0, 100'000);
  for (const TestSession& session : {OpenObserver(1001), client_}) {
    const grpc::Status status = Trim(CallContext(session));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(), HasSubstr("uid 500"));
  }
  EXPECT_EQ(IdleBlocks(broker_), 1u);
}

TEST_F(AdminServiceTest, NeedsASession) {
  EXPECT_EQ(Trim(CallContext()).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  End(root_);
  EXPECT_EQ(Trim(CallContext(root_)).error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(AdminServiceTest, NamesTheDeviceThatIsNotThere) {
  v1::TrimRequest request;
  request.set_device_index(2);
  const grpc::Status status = Trim(CallContext(root_), request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), StartsWith("device_index: is 2"));
}

TEST_F(AdminServiceTest, APoolThatNoDeviceHasIsNotFound) {
  LeaveIdle(0, 100'000);
  v1::TrimRequest request;
  request.set_pool("lake");
  EXPECT_EQ(Trim(CallContext(root_), request).error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_device_index(0);
  EXPECT_EQ(Trim(CallContext(root_), request).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(IdleBlocks(broker_), 1u);
  request.set_pool(broker_.Stats().pools[0].name);
  EXPECT_TRUE(Trim(CallContext(root_), request).ok());
  EXPECT_EQ(response_.blocks(), 1u);
}

}  // namespace
}  // namespace heapbroker
