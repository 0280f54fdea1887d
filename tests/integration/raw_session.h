// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A session without the client library, for what the library would never do.
#ifndef TESTS_INTEGRATION_RAW_SESSION_H_
#define TESTS_INTEGRATION_RAW_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/posix/unique_fd.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "heapbroker/v1/broker.grpc.pb.h"
#include "heapbroker/v1/session.pb.h"

namespace heapbroker {

std::string HelloPacket(const std::string& name, uint32_t major = 1);
std::string FetchPacket(uint64_t block_id);

// The session socket, packet by packet. Move-only, not thread-safe.
class RawSocket {
 public:
  static absl::StatusOr<RawSocket> Connect(const std::string& path);

  absl::Status Send(absl::string_view packet, const std::vector<int>& descriptors = {});

  struct Reply {
    v1::SessionReply message;
    std::vector<UniqueFd> descriptors;
  };
  // UNAVAILABLE when the daemon has closed the connection.
  absl::StatusOr<Reply> Receive();
  absl::StatusOr<Reply> Ask(absl::string_view packet, const std::vector<int>& descriptors = {});

  // True once the daemon has closed the connection; replies before that are read
  // and dropped.
  bool IsDropped();

  const UniqueFd& fd() const { return socket_; }

 private:
  explicit RawSocket(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

// A token in a call's metadata; the default deadline is a generous one.
void Prepare(grpc::ClientContext& context, absl::string_view token);

// Both sockets. Calls answer the daemon's own status, word for word.
class RawSession {
 public:
  static absl::StatusOr<RawSession> Open(const std::string& session_socket,
                                         const std::shared_ptr<grpc::Channel>& channel,
                                         const std::string& name = "raw");

  absl::StatusOr<v1::Block> Allocate(uint64_t size, uint64_t alignment = 0);
  absl::Status Release(uint64_t block_id);
  absl::StatusOr<v1::OpenSegmentResponse> OpenSegment(const std::string& name, uint64_t size);
  // The refusal's own code and text, where it is refused.
  absl::StatusOr<UniqueFd> Fetch(uint64_t block_id);

  const std::string& token() const { return token_; }
  RawSocket& socket() { return socket_; }

 private:
  explicit RawSession(RawSocket socket) : socket_(std::move(socket)) {}

  RawSocket socket_;
  std::string token_;
  std::unique_ptr<v1::MemoryBroker::Stub> stub_;
};

}  // namespace heapbroker
#endif  // TESTS_INTEGRATION_RAW_SESSION_H_
