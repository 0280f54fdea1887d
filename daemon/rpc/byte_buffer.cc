// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/byte_buffer.h"

#include "absl/strings/string_view.h"
#include "daemon/messages/parse.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/slice.h"

namespace heapbroker {

absl::Status ParseBuffer(const grpc::ByteBuffer& buffer, google::protobuf::Message& out) {
  grpc::Slice bytes;
  if (!buffer.TrySingleSlice(&bytes).ok() && !buffer.DumpToSingleSlice(&bytes).ok()) {
    return absl::InvalidArgumentError("the request's compressed bytes cannot be read");
  }
  return ParseMessage(absl::string_view(reinterpret_cast<const char*>(bytes.begin()), bytes.size()),
                      out);
}

grpc::ByteBuffer SerializeToBuffer(const google::protobuf::Message& message) {
  grpc::ByteBuffer buffer;
  bool own_buffer = false;
  // Fails only for a message that is not initialized, which proto3 does not have.
  (void)grpc::SerializationTraits<google::protobuf::Message>::Serialize(message, &buffer,
                                                                        &own_buffer);
  return buffer;
}

}  // namespace heapbroker
