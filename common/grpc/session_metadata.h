// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How a gRPC call says which session it belongs to.
#ifndef COMMON_GRPC_SESSION_METADATA_H_
#define COMMON_GRPC_SESSION_METADATA_H_

#include <cstddef>

namespace heapbroker {

// Metadata key of the session's token (Welcome.token). gRPC carries the values
// of keys that end in "-bin" as bytes, in any language.
inline constexpr char kSessionMetadataKey[] = "heapbroker-session-bin";

// Bytes of a token.
inline constexpr size_t kSessionTokenBytes = 16;

}  // namespace heapbroker
#endif  // COMMON_GRPC_SESSION_METADATA_H_
