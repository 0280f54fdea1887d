// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/daemon.h"

#include <unistd.h>

#include <future>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/app/heap_budgets.h"
#include "daemon/app/ledgers.h"
#include "daemon/app/version.h"
#include "daemon/rpc/grpc_log.h"

namespace heapbroker {
namespace {

// How long the drivers may take to free everything at the end.
constexpr std::chrono::seconds kFreeAllTimeout(2);

// Everyone may connect to a system service; a user's own is the user's.
constexpr mode_t kSystemDirMode = 0755, kSystemSocketMode = 0666;
constexpr mode_t kUserDirMode = 0700, kUserSocketMode = 0600;

bool IsSystemService() { return geteuid() == 0; }

std::vector<DeviceInfo> InfosOf(const std::vector<VulkanDevice>& devices) {
  std::vector<DeviceInfo> infos;
  for (const VulkanDevice& device : devices) infos.push_back(device.info());
  return infos;
}

void LogDevice(const DeviceInfo& device, const LedgerOptions& ledger, Logger& logger) {
  logger.Info(absl::StrCat("device ", device.index, ": ", device.name, " (", device.driver_info,
                           ")", device.software() ? ", a software device" : ""));
  for (size_t heap = 0; heap < device.heaps.size(); ++heap) {
    logger.Info(absl::StrCat("device ", device.index, ", heap ", heap, ": ",
                             FormatBytes(device.heaps[heap].size), ", budget ",
                             FormatBytes(ledger.admission.heaps[heap].bytes)));
  }
  for (const ResolvedPool& pool : ledger.admission.pools) {
    logger.Debug(absl::StrCat("device ", device.index, ", pool ", pool.name));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const DaemonOptions& options,
                                                      Logger& logger) {
  HB_ASSIGN_OR_RETURN(
      RuntimeDir runtime_dir,
      RuntimeDir::Acquire(options.runtime_dir, IsSystemService() ? kSystemDirMode : kUserDirMode));
  HB_ASSIGN_OR_RETURN(OpenedDevices opened, OpenDevices(options.devices, options.require_hardware));
  for (const std::string& warning : opened.warnings) logger.Warning(warning);
  std::unique_ptr<Daemon> daemon(
      new Daemon(logger, std::move(runtime_dir), std::move(opened.devices)));
  HB_RETURN_IF_ERROR(daemon->Build(options));
  HB_RETURN_IF_ERROR(daemon->Serve());
  return daemon;
}

Daemon::Daemon(Logger& logger, RuntimeDir runtime_dir, std::vector<VulkanDevice> devices)
    : logger_(logger),
      runtime_dir_(std::move(runtime_dir)),
      vulkan_(std::move(devices)),
      limits_(RaiseAndReadProcessLimits()),
      sessions_(clock_) {}

absl::Status Daemon::Build(const DaemonOptions& options) {
  HB_ASSIGN_OR_RETURN(const Ledgers ledgers,
                      ChooseLedgers(InfosOf(vulkan_), options, {limits_, MachineMemory()}));
  for (const std::string& warning : ledgers.warnings) logger_.Warning(warning);
  if (options.record) HB_RETURN_IF_ERROR(StartRecording(*options.record, ledgers.options));
  std::vector<DeviceBroker*> brokers;
  for (size_t i = 0; i < vulkan_.size(); ++i) {
    LogDevice(vulkan_[i].info(), ledgers.options[i], logger_);
    HB_ASSIGN_OR_RETURN(std::unique_ptr<ServedDevice> device,
                        ServedDevice::Create(vulkan_[i], options.clear, ledgers.options[i],
                                             {events_, clock_, logger_, recorder_.get()}));
    brokers.push_back(&device->broker());
    served_.push_back(std::move(device));
  }
  devices_.emplace(std::move(brokers));
  memory_service_ =
      std::make_unique<MemoryBrokerService>(sessions_, *devices_, pending_, watches_, clock_);
  stats_service_ = std::make_unique<PoolStatsService>(
      sessions_, *devices_, clock_, PoolStatsOptions{kVersion, clock_.Now(), geteuid()});
  admin_service_ = std::make_unique<AdminService>(sessions_, *devices_, geteuid());
  return absl::OkStatus();
}

absl::Status Daemon::StartRecording(const RecordOptions& options,
                                    const std::vector<LedgerOptions>& ledgers) {
  TraceStart start{kVersion, clock_.Now(), "", {}};
  for (size_t i = 0; i < vulkan_.size(); ++i) {
    start.devices.push_back({vulkan_[i].info(), ledgers[i]});
  }
  RecorderOptions recorder_options;
  recorder_options.limit = options.limit;
  HB_ASSIGN_OR_RETURN(recorder_,
                      Recorder::Start(options.path, start, recorder_options,
                                      [this](const std::string& text) { logger_.Warning(text); }));
  logger_.Info(absl::StrCat("recording in ", options.path));
  return absl::OkStatus();
}

absl::Status Daemon::Serve() {
  DropGrpcLog();
  const mode_t mode = IsSystemService() ? kSystemSocketMode : kUserSocketMode;
  HB_ASSIGN_OR_RETURN(UniqueFd session_listener,
                      runtime_dir_.Listen("session.sock", SocketKind::kSeqPacket, mode));
  HB_ASSIGN_OR_RETURN(UniqueFd rpc_listener,
                      runtime_dir_.Listen("broker.sock", SocketKind::kStream, mode));
  const Administrators administrators{geteuid()};
  SessionServerOptions session_options;
  session_options.max_sessions.administrators = administrators;
  session_options.max_sessions.clients =
      MaxPeers(session_options.max_sessions.clients, limits_.descriptors);
  session_options.few_unread_descriptors = FewUnreadDescriptors(limits_.descriptors);
  RpcServerOptions rpc_options;
  rpc_options.administrators = administrators;
  rpc_options.max_connections = MaxPeers(rpc_options.max_connections, limits_.descriptors);
  session_server_ = std::make_unique<SessionServer>(std::move(session_listener), sessions_,
                                                    devices_->all(), session_options, logger_);
  HB_ASSIGN_OR_RETURN(rpc_server_, RpcServer::Start(std::move(rpc_listener),
                                                    {*memory_service_, *stats_service_,
                                                     *admin_service_, health_service_, sessions_},
                                                    rpc_options));
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
  for (const auto& device : served_) device->EvictEverything();
  const bool all_freed = FreeEverything();
  EndRecording(all_freed);
  return all_freed;
}

// Every device's driver at the same time, each apart, since one may hang in it.
bool Daemon::FreeEverything() {
  const auto deadline = std::chrono::steady_clock::now() + kFreeAllTimeout;
  std::vector<std::pair<std::thread, std::future<void>>> stopping;
  for (const auto& device : served_) {
    std::packaged_task<void()> stop([one = device.get()] { one->FreeEverything(); });
    std::future<void> stopped = stop.get_future();
    stopping.emplace_back(std::thread(std::move(stop)), std::move(stopped));
  }
  bool all_freed = true;
  for (size_t i = 0; i < stopping.size(); ++i) {
    auto& [thread, stopped] = stopping[i];
    if (stopped.wait_until(deadline) == std::future_status::ready) {
      thread.join();
      continue;
    }
    logger_.Warning(absl::StrCat("the driver of device ", i,
                                 " did not free all memory in time; the process's end does it"));
    thread.detach();
    all_freed = false;
  }
  return all_freed;
}

// Nothing happens on a device any more where all of it was freed, so that its
// statistics are those of the last turn.
void Daemon::EndRecording(bool all_freed) {
  if (!recorder_) return;
  std::vector<DeviceStats> stats;
  for (const auto& device : served_) {
    if (all_freed) stats.push_back(device->broker().Stats());
  }
  recorder_->Finish(stats);
}

}  // namespace heapbroker
