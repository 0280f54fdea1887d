// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rpc/server_fixture.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/grpc/session_metadata.h"
#include "common/posix/unix_socket.h"

namespace heapbroker {
namespace {

LedgerOptions SmallLedger() {
  LedgerOptions options;
  options.admission.heaps = {{MiB(64)}};
  options.admission.count_limits = {{LimitKind::kMaxAllocationCount, 1024}};
  return options;
}

DeviceInfo SecondDeviceInfo() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.index = 1;
  info.name = "second device";
  return info;
}

PoolStatsOptions StatsOptions(uid_t daemon_uid) {
  PoolStatsOptions options;
  options.version = "1.2.3";
  options.start_time = absl::FromUnixSeconds(1'700'000'000);
  options.daemon_uid = daemon_uid;
  return options;
}

}  // namespace

ServerFixture::ServerFixture(size_t device_count)
    : second_device_(SecondDeviceInfo()),
      broker_(SmallLedger(), {device_, executor_, events_, clock_, alarm_}),
      second_broker_(SmallLedger(), {second_device_, executor_, events_, clock_, alarm_}),
      devices_(device_count == 1 ? std::vector<DeviceBroker*>{&broker_}
                                 : std::vector<DeviceBroker*>{&broker_, &second_broker_}),
      stats_service_(sessions_, devices_, clock_, StatsOptions(kDaemonUid)) {
  absl::StatusOr<UniqueFd> listener =
      ListenUnix(directory_.File("broker.sock"), SocketKind::kStream, 0600);
  EXPECT_TRUE(listener.ok()) << listener.status();
  absl::StatusOr<std::unique_ptr<RpcServer>> server = StartServer(*std::move(listener));
  EXPECT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  channel_ = NewChannel();
  memory_ = v1::MemoryBroker::NewStub(channel_);
  stats_ = v1::PoolStats::NewStub(channel_);
  admin_ = v1::Admin::NewStub(channel_);
  health_ = grpc::health::v1::Health::NewStub(channel_);
}

absl::StatusOr<std::unique_ptr<RpcServer>> ServerFixture::StartServer(
    UniqueFd listener, const RpcServerOptions& options) {
  return RpcServer::Start(
      std::move(listener),
      {memory_service_, stats_service_, admin_service_, health_service_, sessions_}, options);
}

ServerFixture::~ServerFixture() {
  if (server_ != nullptr) server_->Shutdown();
  executor_.Stop();
}

TestSession ServerFixture::Open(SessionIdentity identity) {
  SessionToken token{};
  token[0] = ++last_token_;
  token[15] = 0xFF;  // Not text: the metadata must carry bytes.
  const uint32_t uid = identity.uid;
  TestSession opened;
  opened.session = sessions_.Open(std::move(identity), token);
  opened.token.assign(token.begin(), token.end());
  for (DeviceBroker* device : devices_.all()) {
    EXPECT_TRUE(device->AddSession(opened.session.id, TenantId(uid)).ok());
  }
  return opened;
}

TestSession ServerFixture::OpenClient(uint32_t uid) {
  return Open({.uid = uid, .gid = uid + 1, .pid = 4711, .name = "a client"});
}

TestSession ServerFixture::OpenObserver(uint32_t uid) {
  return Open({.uid = uid, .gid = uid + 1, .pid = 4712, .name = "a tool", .observer = true});
}

void ServerFixture::End(const TestSession& session) {
  sessions_.End(session.session.id);
  for (DeviceBroker* device : devices_.all()) device->EndSession(session.session.id);
}

std::string ServerFixture::address() const {
  return absl::StrCat("unix:", directory_.File("broker.sock"));
}

std::shared_ptr<grpc::Channel> ServerFixture::NewChannel() const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address(), grpc::InsecureChannelCredentials(), arguments);
}

v1::Block ServerFixture::AllocateOne(const TestSession& session, uint64_t size,
                                     uint32_t device_index) {
  v1::AllocateRequest request;
  if (device_index != 0) request.set_device_index(device_index);
  request.add_blocks()->set_size(size);
  v1::AllocateResponse response;
  CallContext context(session);
  const grpc::Status status = memory_->Allocate(context.get(), request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response.blocks_size() == 1 ? response.blocks(0) : v1::Block();
}

v1::OpenSegmentRequest ServerFixture::CreateRequest(const std::string& name, uint64_t size) {
  v1::OpenSegmentRequest request;
  request.set_name(name);
  request.set_mode(v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
  request.set_size(size);
  return request;
}

grpc::Status ServerFixture::Release(const TestSession& session, const std::vector<uint64_t>& ids) {
  v1::ReleaseRequest request;
  for (uint64_t id : ids) request.add_block_ids(id);
  return Release(session, request);
}

grpc::Status ServerFixture::Release(const TestSession& session, const v1::ReleaseRequest& request) {
  v1::ReleaseResponse response;
  CallContext context(session);
  return memory_->Release(context.get(), request, &response);
}

bool ServerFixture::NothingHeld(const TestSession& session) const {
  for (DeviceBroker* device : devices_.all()) {
    const HolderStats holdings = device->Holdings(session.session.id);
    if (holdings.leased_blocks != 0 || holdings.attached_segments != 0) return false;
  }
  return pending_.size() == 0;
}

CallContext::CallContext() { WithDeadline(absl::Seconds(30)); }

CallContext::CallContext(const TestSession& session) : CallContext() { WithToken(session.token); }

CallContext& CallContext::WithToken(const std::string& token) {
  context_.AddMetadata(kSessionMetadataKey, token);
  return *this;
}

CallContext& CallContext::WithDeadline(absl::Duration from_now) {
  context_.set_deadline(std::chrono::system_clock::now() + absl::ToChronoNanoseconds(from_now));
  return *this;
}

}  // namespace heapbroker
