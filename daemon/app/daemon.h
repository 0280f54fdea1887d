// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// All of the daemon's objects, in the order in which they need each other.
#ifndef DAEMON_APP_DAEMON_H_
#define DAEMON_APP_DAEMON_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/posix/logging.h"
#include "common/posix/runtime_dir.h"
#include "daemon/app/options.h"
#include "daemon/app/timer.h"
#include "daemon/core/device_broker.h"
#include "daemon/core/sessions.h"
#include "daemon/rpc/health_service.h"
#include "daemon/rpc/memory_broker_service.h"
#include "daemon/rpc/pending_calls.h"
#include "daemon/rpc/pool_stats_service.h"
#include "daemon/rpc/server.h"
#include "daemon/session/session_server.h"
#include "daemon/vulkan/device.h"
#include "daemon/vulkan/device_thread.h"
#include "daemon/vulkan/vulkan_memory.h"

namespace heapbroker {

// Serves from Start until Stop. Both are for one thread.
class Daemon {
 public:
  // Returns when the device, the pools and both sockets are up. The lock on the
  // runtime directory comes first: a second daemon is refused before it touches
  // the device.
  //   errors of RuntimeDir::Acquire, OpenDevice, ChooseHeapBudgets and the servers
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options,
                                                       Logger& logger);

  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  // Stop must have returned true, or Start have failed.
  ~Daemon() = default;

  // Ends all calls and sessions and gives all memory back to the driver. False
  // where the driver did not free it in time: its threads still run, so the
  // process must be left with _exit, which frees everything.
  [[nodiscard]] bool Stop();

 private:
  Daemon(Logger& logger, RuntimeDir runtime_dir, VulkanDevice device);
  absl::Status Build(const DaemonOptions& options);
  absl::StatusOr<LedgerOptions> ChooseLedgerOptions(const DaemonOptions& options);
  absl::Status Serve();

  Logger& logger_;
  RealClock clock_;
  RuntimeDir runtime_dir_;
  VulkanDevice device_;
  const uint64_t descriptors_;  // How many this process may have open.
  std::unique_ptr<VulkanMemory> memory_;
  PendingCalls pending_;
  Sessions sessions_;
  std::unique_ptr<DeviceThreads> threads_;
  std::unique_ptr<DeviceBroker> broker_;
  Timer timer_{[this] { broker_->Tick(); }};
  std::unique_ptr<MemoryBrokerService> memory_service_;
  std::unique_ptr<PoolStatsService> stats_service_;
  HealthService health_service_;
  std::unique_ptr<SessionServer> session_server_;
  std::unique_ptr<RpcServer> rpc_server_;
};

}  // namespace heapbroker
#endif  // DAEMON_APP_DAEMON_H_
