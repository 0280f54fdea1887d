// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// All of the daemon's objects, in the order in which they need each other.
#ifndef DAEMON_APP_DAEMON_H_
#define DAEMON_APP_DAEMON_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/posix/logging.h"
#include "common/posix/runtime_dir.h"
#include "daemon/app/count_limits.h"
#include "daemon/app/options.h"
#include "daemon/app/served_device.h"
#include "daemon/core/devices.h"
#include "daemon/core/sessions.h"
#include "daemon/rpc/admin_service.h"
#include "daemon/rpc/event_router.h"
#include "daemon/rpc/health_service.h"
#include "daemon/rpc/memory_broker_service.h"
#include "daemon/rpc/pending_calls.h"
#include "daemon/rpc/pool_stats_service.h"
#include "daemon/rpc/server.h"
#include "daemon/rpc/watch_streams.h"
#include "daemon/session/session_server.h"
#include "daemon/trace/recorder.h"
#include "daemon/vulkan/device.h"

namespace heapbroker {

// Serves from Start until Stop. Both are for one thread.
class Daemon {
 public:
  // Returns when the devices, the pools and both sockets are up. The lock on the
  // runtime directory comes first: a second daemon is refused before it touches
  // a device.
  //   errors of RuntimeDir::Acquire, OpenDevices, ChooseLedgers, Recorder::Start and
  //   the servers
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const DaemonOptions& options,
                                                       Logger& logger);

  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  // Stop must have returned true, or Start have failed.
  ~Daemon() = default;

  // Ends all calls and sessions and gives all memory back to the drivers. False
  // where one of them did not free it in time: its threads still run, so the
  // process must be left with _exit, which frees everything.
  [[nodiscard]] bool Stop();

 private:
  Daemon(Logger& logger, RuntimeDir runtime_dir, std::vector<VulkanDevice> devices);
  absl::Status Build(const DaemonOptions& options);
  absl::Status StartRecording(const RecordOptions& options,
                              const std::vector<LedgerOptions>& ledgers);
  absl::Status Serve();
  bool FreeEverything();
  void EndRecording(bool all_freed);

  Logger& logger_;
  RealClock clock_;
  RuntimeDir runtime_dir_;
  const std::vector<VulkanDevice> vulkan_;
  const ProcessLimits limits_;
  std::unique_ptr<Recorder> recorder_;  // Null: nothing is recorded.
  PendingCalls pending_;
  WatchStreams watches_;
  EventRouter events_{pending_, watches_};
  Sessions sessions_;
  std::vector<std::unique_ptr<ServedDevice>> served_;
  std::optional<Devices> devices_;
  std::unique_ptr<MemoryBrokerService> memory_service_;
  std::unique_ptr<PoolStatsService> stats_service_;
  std::unique_ptr<AdminService> admin_service_;
  HealthService health_service_;
  std::unique_ptr<SessionServer> session_server_;
  std::unique_ptr<RpcServer> rpc_server_;
};

}  // namespace heapbroker
#endif  // DAEMON_APP_DAEMON_H_
