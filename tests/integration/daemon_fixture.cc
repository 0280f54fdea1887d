// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/daemon_fixture.h"

#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/process_facts.h"

namespace heapbroker {
namespace {

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
}

// Each once, however many descriptors of the process refer to it.
std::set<std::string> Sockets(pid_t pid) {
  const absl::StatusOr<std::vector<std::string>> open = OpenDescriptors(pid);
  EXPECT_THAT(open, IsOk());
  std::set<std::string> sockets;
  if (!open.ok()) return sockets;
  for (const std::string& descriptor : *open) {
    if (absl::StartsWith(descriptor, "socket:")) sockets.insert(descriptor);
  }
  return sockets;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const DaemonFixture::Holdings& holdings) {
  return out << holdings.client_sessions << " client sessions, " << holdings.in_use << " bytes, "
             << holdings.allocations << " allocations, " << holdings.leased_blocks
             << " leased blocks";
}

void DaemonFixture::StartDaemon(const std::vector<std::string>& flags) {
  DaemonOptions options;
  options.flags = flags;
  StartDaemonWith(std::move(options));
}

void DaemonFixture::StartDaemonWith(DaemonOptions options) {
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  options.runtime_dir = runtime_dir_;
  ASSERT_OK_AND_ASSIGN(daemon_, DaemonProcess::Start(std::move(options)));
  // Whoever asked whether it is ready goes, so that descriptors can be compared
  // with what they are now.
  ASSERT_TRUE(AwaitNoConnections(daemon_->pid()));
  AskDaemonAnew();
}

void DaemonFixture::AskDaemonAnew() {
  // A channel of its own for each daemon: one that has seen a lost daemon waits
  // before it tries again.
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(absl::StrCat("unix:", SocketPath("broker.sock")),
                                       grpc::InsecureChannelCredentials(), arguments);
  stats_ = v1::PoolStats::NewStub(channel_);
}

bool DaemonFixture::AwaitNoConnections(pid_t daemon) {
  constexpr size_t kListeners = 2;
  return WaitFor([daemon] { return Sockets(daemon).size() == kListeners; });
}

std::string DaemonFixture::SocketPath(absl::string_view name) const {
  return absl::StrCat(runtime_dir_, "/", name);
}

std::unique_ptr<ClientProcess> DaemonFixture::StartClient(const std::string& name,
                                                          std::optional<uid_t> uid) {
  auto client = ClientProcess::Start({.runtime_dir = runtime_dir_, .uid = uid});
  EXPECT_THAT(client, IsOk());
  if (!client.ok()) return nullptr;
  const auto connected = (*client)->Ask(absl::StrCat("connect ", name));
  EXPECT_THAT(connected, IsOk());
  return connected.ok() ? *std::move(client) : nullptr;
}

v1::GetStatsResponse DaemonFixture::Stats() {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::GetStatsResponse response;
  const grpc::Status status = stats_->GetStats(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return response;
}

DaemonFixture::Holdings DaemonFixture::Held() {
  const v1::GetStatsResponse stats = Stats();
  Holdings held{.client_sessions = stats.client_sessions()};
  for (const v1::DeviceStats& device : stats.devices()) {
    held.allocations += device.allocations();
    for (const v1::HeapStats& heap : device.heaps()) held.in_use += heap.in_use();
    for (const v1::PoolStatsRow& pool : device.pools()) held.leased_blocks += pool.leased_blocks();
  }
  return held;
}

uint64_t DaemonFixture::Hits() {
  uint64_t hits = 0;
  const v1::GetStatsResponse stats = Stats();
  for (const v1::DeviceStats& device : stats.devices()) {
    for (const v1::PoolStatsRow& pool : device.pools()) hits += pool.hits();
  }
  return hits;
}

uint32_t DaemonFixture::WaitingSessions() {
  grpc::ClientContext context;
  SetDeadline(context);
  v1::ListSegmentsResponse response;
  const grpc::Status status = stats_->ListSegments(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  uint32_t waiting = 0;
  for (const v1::SegmentInfo& segment : response.segments()) waiting += segment.waiting_calls();
  return waiting;
}

size_t DaemonFixture::DaemonDescriptors() const {
  const absl::StatusOr<std::vector<std::string>> open = OpenDescriptors(daemon_->pid());
  EXPECT_THAT(open, IsOk());
  if (!open.ok()) return 0;
  return std::count_if(open->begin(), open->end(), [](const std::string& descriptor) {
    return !absl::StartsWith(descriptor, "pipe:") && !absl::StartsWith(descriptor, "/proc/");
  });
}

}  // namespace heapbroker
