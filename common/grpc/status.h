// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// absl::Status, which the project speaks, and grpc::Status, which travels.
#ifndef COMMON_GRPC_STATUS_H_
#define COMMON_GRPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace heapbroker {

// Code and message; payloads stay behind.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Code and message. A code that gRPC does not define becomes UNKNOWN.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace heapbroker
#endif  // COMMON_GRPC_STATUS_H_
