// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A whole server on a socket of its own, over simulated devices.
#ifndef TESTS_UNIT_RPC_SERVER_FIXTURE_H_
#define TESTS_UNIT_RPC_SERVER_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "daemon/core/device_broker.h"
#include "daemon/core/devices.h"
#include "daemon/core/sessions.h"
#include "daemon/core/simulated_device.h"
#include "daemon/rpc/event_router.h"
#include "daemon/rpc/server.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "heapbroker/v1/admin.grpc.pb.h"
#include "heapbroker/v1/broker.grpc.pb.h"
#include "heapbroker/v1/stats.grpc.pb.h"
#include "tests/fakes/fake_alarm.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/rpc/thread_executor.h"

namespace heapbroker {

// A session as the session edge would open it, and its end.
struct TestSession {
  Session session;
  std::string token;  // As it goes into the metadata.
};

class ServerFixture : public testing::Test {
 protected:
  static constexpr uint32_t kTenant = 1000;
  static constexpr uint32_t kDaemonUid = 500;

  // With one device, or with a second one like it.
  explicit ServerFixture(size_t device_count = 1);
  ~ServerFixture() override;

  // Over the same services.
  absl::StatusOr<std::unique_ptr<RpcServer>> StartServer(
      UniqueFd listener, const RpcServerOptions& options = RpcServerOptions());

  TestSession Open(SessionIdentity identity);
  TestSession OpenClient(uint32_t uid = kTenant);
  TestSession OpenObserver(uint32_t uid = kTenant);
  void End(const TestSession& session);

  std::string address() const;
  // A channel with a connection of its own.
  std::shared_ptr<grpc::Channel> NewChannel() const;

  // Allocate of one block of `size`; OK.
  v1::Block AllocateOne(const TestSession& session, uint64_t size, uint32_t device_index = 0);
  // OpenSegment with MODE_CREATE_OR_ATTACH.
  static v1::OpenSegmentRequest CreateRequest(const std::string& name, uint64_t size = 4096);
  grpc::Status Release(const TestSession& session, const std::vector<uint64_t>& ids);
  grpc::Status Release(const TestSession& session, const v1::ReleaseRequest& request);
  // True when the core has nothing that anyone holds or waits for.
  bool NothingHeld(const TestSession& session) const;

  TempDir directory_;
  RealClock clock_;
  Sessions sessions_{clock_};
  SimulatedDevice device_;
  SimulatedDevice second_device_;
  FakeAlarm alarm_;
  ThreadExecutor executor_;
  PendingCalls pending_;
  WatchStreams watches_;
  EventRouter events_{pending_, watches_};
  DeviceBroker broker_;
  DeviceBroker second_broker_;
  Devices devices_;
  MemoryBrokerService memory_service_{sessions_, devices_, pending_, watches_, clock_};
  PoolStatsService stats_service_;
  AdminService admin_service_{sessions_, devices_, kDaemonUid};
  HealthService health_service_;
  std::unique_ptr<RpcServer> server_;

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::MemoryBroker::Stub> memory_;
  std::unique_ptr<v1::PoolStats::Stub> stats_;
  std::unique_ptr<v1::Admin::Stub> admin_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;

 private:
  uint8_t last_token_ = 0;
};

// The context of one call: with a session's token, and with a deadline so that no
// test hangs. One that ends a test's call on purpose sets its own.
class CallContext {
 public:
  CallContext();
  explicit CallContext(const TestSession& session);
  CallContext& WithToken(const std::string& token);
  CallContext& WithDeadline(absl::Duration from_now);

  grpc::ClientContext* get() { return &context_; }

 private:
  grpc::ClientContext context_;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_RPC_SERVER_FIXTURE_H_
