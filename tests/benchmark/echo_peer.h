// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The echo server, seen from its client.
#ifndef TESTS_BENCHMARK_ECHO_PEER_H_
#define TESTS_BENCHMARK_ECHO_PEER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/posix/unique_fd.h"
#include "heapbroker/v1/broker.grpc.pb.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace heapbroker {

// A process of its own, as the daemon is. Killed when this object goes. Not
// thread-safe.
class EchoPeer {
 public:
  static absl::StatusOr<std::unique_ptr<EchoPeer>> Start();

  // Answers Allocate, and that alone.
  v1::MemoryBroker::Stub& stub() { return *stub_; }

  // 32 bytes there and back over a SOCK_SEQPACKET socket.
  absl::Status PacketRoundTrip();
  // The same, and with the answer a descriptor, which is closed.
  absl::Status DescriptorRoundTrip();

 private:
  explicit EchoPeer(Process process) : process_(std::move(process)) {}
  absl::Status Connect(const std::string& directory);
  absl::Status RoundTrip(char first, size_t descriptors);

  std::unique_ptr<TempDir> directory_;  // Outlives the process.
  Process process_;
  UniqueFd packets_;
  std::unique_ptr<v1::MemoryBroker::Stub> stub_;
};

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_ECHO_PEER_H_
