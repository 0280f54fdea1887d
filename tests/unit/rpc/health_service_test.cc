// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/health_service.h"

#include <memory>

#include "tests/support/wait_for.h"
#include "tests/unit/rpc/server_fixture.h"

namespace heapbroker {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

class HealthServiceTest : public ServerFixture {
 protected:
  static HealthCheckRequest For(const std::string& service) {
    HealthCheckRequest request;
    request.set_service(service);
    return request;
  }
  HealthCheckResponse::ServingStatus Check(const std::string& service) {
    HealthCheckResponse response;
    CallContext context;
    EXPECT_TRUE(health_->Check(context.get(), For(service), &response).ok());
    return response.status();
  }
};

TEST_F(HealthServiceTest, ChecksTheDaemonAndEachService) {
  for (const char* service :
       {"", "heapbroker.v1.MemoryBroker", "heapbroker.v1.PoolStats", "heapbroker.v1.Admin"}) {
    EXPECT_EQ(Check(service), HealthCheckResponse::NOT_SERVING) << service;
  }
  health_service_.SetHealth(Health::kServing);
  for (const char* service :
       {"", "heapbroker.v1.MemoryBroker", "heapbroker.v1.PoolStats", "heapbroker.v1.Admin"}) {
    EXPECT_EQ(Check(service), HealthCheckResponse::SERVING) << service;
  }
}

TEST_F(HealthServiceTest, ChecksNoOtherService) {
  HealthCheckResponse response;
  CallContext context;
  EXPECT_EQ(health_->Check(context.get(), For("heapbroker.v1.Nothing"), &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(HealthServiceTest, AWatcherSeesEveryChangeThatItWaitsFor) {
  CallContext context;
  const auto reader = health_->Watch(context.get(), For(""));
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  for (int i = 0; i < 20; ++i) {
    health_service_.SetHealth(Health::kServing);
    ASSERT_TRUE(reader->Read(&response));
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
    health_service_.SetHealth(Health::kNotServing);
    ASSERT_TRUE(reader->Read(&response));
    EXPECT_EQ(response.status(), HealthCheckResponse::NOT_SERVING);
  }
  context.get()->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(HealthServiceTest, AWatcherThatReadsNothingCostsNothingAndLearnsTheLatest) {
  CallContext context;
  const auto reader = health_->Watch(context.get(), For(""));
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  for (int i = 0; i < 10'000; ++i) {
    health_service_.SetHealth(Health::kServing);
    health_service_.SetHealth(Health::kNotServing);
  }
  health_service_.SetHealth(Health::kServing);
  const auto caught_up = [&] {
    return reader->Read(&response) && response.status() == HealthCheckResponse::SERVING;
  };
  EXPECT_TRUE(WaitFor(caught_up));
  context.get()->TryCancel();
}

TEST_F(HealthServiceTest, AWatcherOfAnUnknownServiceIsToldSoAndStays) {
  CallContext context;
  const auto reader = health_->Watch(context.get(), For("heapbroker.v1.Nothing"));
  HealthCheckResponse response;
  ASSERT_TRUE(reader->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  health_service_.SetHealth(Health::kServing);
  context.get()->TryCancel();
  EXPECT_FALSE(reader->Read(&response));
}

TEST_F(HealthServiceTest, ManyWatchersComeAndGo) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<CallContext>> contexts;
    std::vector<std::unique_ptr<grpc::ClientReader<HealthCheckResponse>>> readers;
    for (int i = 0; i < 20; ++i) {
      contexts.push_back(std::make_unique<CallContext>());
      readers.push_back(health_->Watch(contexts.back()->get(), For("")));
    }
    health_service_.SetHealth(round % 2 == 0 ? Health::kServing : Health::kNotServing);
    for (auto& context : contexts) context->get()->TryCancel();
    for (auto& reader : readers) {
      EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
    }
  }
  EXPECT_EQ(Check(""), HealthCheckResponse::NOT_SERVING);
}

}  // namespace
}  // namespace heapbroker
