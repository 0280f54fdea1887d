// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/daemon.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/app/heap_budgets.h"
#include "daemon/app/version.h"
#include "daemon/rpc/grpc_log.h"

namespace heapbroker {
namespace {

// How long the driver may take to free everything at the end.
constexpr std::chrono::seconds kFreeAllTimeout(2);

// Everyone may connect to a system service; a user's own is the user's.
constexpr mode_t kSystemDirMode = 0755, kSystemSocketMode = 0666;
constexpr mode_t kUserDirMode = 0700, kUserSocketMode = 0600;

bool IsSystemService() { return geteuid() == 0; }

// Each block keeps a descriptor open, and the usual soft limit of 1024 exists for
// programs that use select(). Returns how many descriptors there may be.
uint64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur;
}

// Half of the descriptors, at most this many, are for sessions and connections.
constexpr uint64_t kMostDescriptorsForPeers = 4096;
// A session has its socket, a pidfd and a gRPC connection, which has a duplicate.
constexpr uint64_t kDescriptorsPerPeer = 4;
// The one that is exported, and the one that a software driver keeps beside it.
constexpr uint64_t kDescriptorsPerBlock = 2;

uint64_t DescriptorsForPeers(uint64_t descriptors) {
  return std::min(kMostDescriptorsForPeers, descriptors / 2);
}

// `most`, or as many as have descriptors without taking those of blocks.
size_t MaxPeers(size_t most, uint64_t descriptors) {
  return std::min<size_t>(most, DescriptorsForPeers(descriptors) / kDescriptorsPerPeer);
}

// Passing maxMemoryAllocationCount is undefined behaviour, and the driver's own
// allocations may count, so a margin stays.
uint64_t MaxAllocations(const DeviceInfo& device, uint64_t descriptors) {
  const uint64_t margin = std::min<uint64_t>(16, device.max_allocation_count / 8);
  const uint64_t for_blocks = descriptors - DescriptorsForPeers(descriptors);
  return std::min(device.max_allocation_count - margin, for_blocks / kDescriptorsPerBlock);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options,
                                                      Logger& logger) {
  HB_ASSIGN_OR_RETURN(
      RuntimeDir runtime_dir,
      RuntimeDir::Acquire(options.runtime_dir, IsSystemService() ? kSystemDirMode : kUserDirMode));
  HB_ASSIGN_OR_RETURN(OpenedDevice opened, OpenDevice(options.device));
  if (!opened.warning.empty()) logger.Warning(opened.warning);
  std::unique_ptr<Daemon> daemon(
      new Daemon(logger, std::move(runtime_dir), std::move(opened.device)));
  HB_RETURN_IF_ERROR(daemon->Build(options));
  HB_RETURN_IF_ERROR(daemon->Serve());
  return daemon;
}

Daemon::Daemon(Logger& logger, RuntimeDir runtime_dir, VulkanDevice device)
    : logger_(logger),
      runtime_dir_(std::move(runtime_dir)),
      device_(std::move(device)),
      descriptors_(RaiseDescriptorLimit()),
      sessions_(clock_) {}

absl::Status Daemon::Build(const DaemonOptions& options) {
  HB_ASSIGN_OR_RETURN(memory_, VulkanMemory::Create(device_, {options.clear, ClearPath::kMapping}));
  HB_ASSIGN_OR_RETURN(const LedgerOptions ledger, ChooseLedgerOptions(options));
  threads_ = std::make_unique<DeviceThreads>();
  broker_ = std::make_unique<DeviceBroker>(
      ledger, BrokerPorts{*memory_, *threads_, pending_, clock_, timer_});
  memory_service_ = std::make_unique<MemoryBrokerService>(sessions_, *broker_, pending_);
  stats_service_ = std::make_unique<PoolStatsService>(
      sessions_, *broker_, PoolStatsOptions{kVersion, clock_.Now(), geteuid()});
  return absl::OkStatus();
}

absl::StatusOr<LedgerOptions> Daemon::ChooseLedgerOptions(const DaemonOptions& options) {
  const DeviceInfo& device = device_.info();
  HB_ASSIGN_OR_RETURN(HeapBudgets budgets,
                      ChooseHeapBudgets(device, MachineMemory(), options.heap_budgets));
  for (const std::string& warning : budgets.warnings) logger_.Warning(warning);
  LedgerOptions ledger;
  for (Bytes limit : budgets.limits) ledger.admission.heaps.push_back({limit});
  ledger.admission.count_limits = {
      {LimitKind::kMaxAllocationCount, MaxAllocations(device, descriptors_)}};
  ledger.tenants = device.software() ? options.software_tenants : TenantRule::kAnyTenant;
  logger_.Info(absl::StrCat("device ", device.index, ": ", device.name, " (", device.driver_info,
                            ")", device.software() ? ", a software device" : ""));
  for (size_t heap = 0; heap < device.heaps.size(); ++heap) {
    logger_.Info(absl::StrCat("heap ", heap, ": ", FormatBytes(device.heaps[heap].size),
                              ", budget ", FormatBytes(ledger.admission.heaps[heap].bytes)));
  }
  return ledger;
}

absl::Status Daemon::Serve() {
  DropGrpcLog();
  const mode_t mode = IsSystemService() ? kSystemSocketMode : kUserSocketMode;
  HB_ASSIGN_OR_RETURN(UniqueFd session_listener,
                      runtime_dir_.Listen("session.sock", SocketKind::kSeqPacket, mode));
  HB_ASSIGN_OR_RETURN(UniqueFd rpc_listener,
                      runtime_dir_.Listen("broker.sock", SocketKind::kStream, mode));
  SessionServerOptions session_options;
  session_options.max_sessions.clients =
      MaxPeers(session_options.max_sessions.clients, descriptors_);
  RpcServerOptions rpc_options;
  rpc_options.max_connections = MaxPeers(rpc_options.max_connections, descriptors_);
  const std::array<DeviceBroker*, 1> brokers = {broker_.get()};
  session_server_ = std::make_unique<SessionServer>(std::move(session_listener), sessions_, brokers,
                                                    session_options, logger_);
  HB_ASSIGN_OR_RETURN(
      rpc_server_,
      RpcServer::Start(std::move(rpc_listener),
                       {*memory_service_, *stats_service_, health_service_}, rpc_options));
  HB_RETURN_IF_ERROR(session_server_->Start());
  health_service_.SetHealth(Health::kServing);
  logger_.Info(absl::StrCat("heapbrokerd ", kVersion, " serves in ", runtime_dir_.path()));
  return absl::OkStatus();
}

bool Daemon::Stop() {
  logger_.Info("stopping");
  health_service_.SetHealth(Health::kNotServing);
  rpc_server_->Shutdown();
  session_server_->Stop();
  timer_.Stop();
  broker_->EvictEverything();
  // Apart, since a driver may hang in it.
  std::packaged_task<void()> stop([this] { threads_->Stop(); });
  std::future<void> stopped = stop.get_future();
  std::thread stopping(std::move(stop));
  if (stopped.wait_for(kFreeAllTimeout) != std::future_status::ready) {
    logger_.Warning("the driver did not free all memory in time; the process's end does it");
    stopping.detach();
    return false;
  }
  stopping.join();
  return true;
}

}  // namespace heapbroker
