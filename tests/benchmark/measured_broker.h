// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A real daemon, and all that its clients do most often, as cases to measure.
#ifndef TESTS_BENCHMARK_MEASURED_BROKER_H_
#define TESTS_BENCHMARK_MEASURED_BROKER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/transport/connection.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "heapbroker/client.h"
#include "heapbroker/v1/broker.grpc.pb.h"
#include "heapbroker/v1/stats.grpc.pb.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/benchmark/rounds.h"
#include "tests/support/daemon_process.h"

namespace heapbroker {

// Size of every block in here: what the cache finds at once after the first.
inline constexpr Bytes kMeasuredBlockSize = MiB(1);

// Of the plan that is leased as a whole.
inline constexpr int kArenas = 12;

// The request of every Allocate, of the daemon and of the echo server.
v1::AllocateRequest MeasuredRequest();

// One session of a daemon of this build, with a device to import on. Not
// thread-safe; must outlive the cases.
class MeasuredBroker {
 public:
  static absl::StatusOr<std::unique_ptr<MeasuredBroker>> Start();

  // Allocate of `stub`, prepared as the client library does: the token, and a
  // deadline.
  absl::StatusOr<v1::AllocateResponse> Allocate(v1::MemoryBroker::Stub& stub);

  // By itself each of the calls: a block comes from the stub, is timed or not,
  // and goes back.
  Case AllocateAlone();
  Case ReleaseAlone();
  Case HealthCheck();
  Case FetchAlone();
  Case ImportAlone();
  // Through the client library, as a program does it.
  Case LeaseAndReturn();
  Case LeaseImportAndReturn();
  // kArenas blocks in one call, all imported; their return is not in the time.
  Case LeasePlan();
  // By another session than the one that has sealed it, and imported; leaving it again is
  // not in the time. Errors of Client::OpenSegment, here or when it is called.
  absl::StatusOr<Case> AttachToSegment(Bytes size);
  // Without the daemon.
  Case DirectAllocation();

  // Requests so far that no cached block could serve.
  absl::StatusOr<uint64_t> CacheMisses();

 private:
  MeasuredBroker() = default;
  absl::Status Connect();
  absl::Status Release(uint64_t block_id);

  // Members that others refer to come first.
  std::unique_ptr<DaemonProcess> daemon_;
  std::shared_ptr<Connection> connection_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<v1::MemoryBroker::Stub> memory_;
  std::unique_ptr<v1::PoolStats::Stub> stats_;
  std::unique_ptr<grpc::health::v1::Health::Stub> health_;
  std::unique_ptr<MinimalDevice> device_;
  std::unique_ptr<VulkanImporter> importer_;
  Lease held_;  // For what needs a block and leaves it as it is.
  std::vector<Segment> sealed_;
  std::shared_ptr<Client> reader_;
};

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_MEASURED_BROKER_H_
