// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A daemon, its clients, and what its statistics say.
#ifndef TESTS_INTEGRATION_DAEMON_FIXTURE_H_
#define TESTS_INTEGRATION_DAEMON_FIXTURE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpcpp/channel.h"
#include "gtest/gtest.h"
#include "heapbroker/v1/stats.grpc.pb.h"
#include "tests/integration/client_process.h"
#include "tests/support/daemon_process.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace heapbroker {

class DaemonFixture : public testing::Test {
 public:
  // What the daemon holds for its clients, and for how many.
  struct Holdings {
    uint32_t client_sessions = 0;
    uint64_t in_use = 0;  // Bytes, over all heaps.
    uint64_t allocations = 0;
    uint64_t leased_blocks = 0;
    friend bool operator==(const Holdings&, const Holdings&) = default;
    friend std::ostream& operator<<(std::ostream& out, const Holdings& holdings);
  };

 protected:
  // In a directory that every user may enter. Fails the test if it does not start.
  void StartDaemon(const std::vector<std::string>& flags = {});
  void StartDaemonWith(DaemonOptions options);
  // For whoever has put another daemon into `daemon_`: statistics come from that one.
  void AskDaemonAnew();
  // True as soon as the daemon has only the sockets that it listens on.
  static bool AwaitNoConnections(pid_t daemon);
  const std::string& runtime_dir() const { return runtime_dir_; }
  std::string SocketPath(absl::string_view name) const;

  // A client that is connected; null, and the test failed, when there is none.
  std::unique_ptr<ClientProcess> StartClient(const std::string& name = "client",
                                             std::optional<uid_t> uid = std::nullopt);

  // All of these fail the test if the daemon does not answer.
  v1::GetStatsResponse Stats();
  Holdings Held();
  // Leases that were served out of a pool, since the daemon started.
  uint64_t Hits();
  // Sessions that wait for a segment that another one fills, over all segments.
  uint32_t WaitingSessions();
  // Without pipes and files of /proc, of which the daemon itself has none: a
  // sanitizer that has something to look up reads its maps and starts its
  // symbolizer behind pipes.
  size_t DaemonDescriptors() const;

  TempDir dir_;
  const std::string runtime_dir_ = dir_.File("run");
  std::unique_ptr<DaemonProcess> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::PoolStats::Stub> stats_;
};

}  // namespace heapbroker
#endif  // TESTS_INTEGRATION_DAEMON_FIXTURE_H_
