// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Messages as gRPC carries them.
#ifndef DAEMON_RPC_BYTE_BUFFER_H_
#define DAEMON_RPC_BYTE_BUFFER_H_

#include "absl/status/status.h"
#include "google/protobuf/message.h"
#include "grpcpp/support/byte_buffer.h"

namespace heapbroker {

// As ParseMessage of daemon/messages.
absl::Status ParseBuffer(const grpc::ByteBuffer& buffer, google::protobuf::Message& out);

// `message` must be able to be sent: its strings are UTF-8.
grpc::ByteBuffer SerializeToBuffer(const google::protobuf::Message& message);

}  // namespace heapbroker
#endif  // DAEMON_RPC_BYTE_BUFFER_H_
