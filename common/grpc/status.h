// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// absl::Status, which the project speaks, and grpc::Status, which travels.
#ifndef COMMON_GRPC_STATUS_H_
#define COMMON_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/status.h"

namespace heapbroker {

// Details that go with an error to the other side, in `grpc-status-details-bin`: a
// serialized google.rpc.Status. `status` must not be OK.
void SetStatusDetails(absl::Status& status, absl::string_view details);
// Empty where there are none. They come from a peer, who may send any bytes.
std::string StatusDetails(const absl::Status& status);

// Code, message and StatusDetails; other payloads stay behind.
grpc::Status ToGrpcStatus(const absl::Status& status);

// Code, message and StatusDetails. A code that gRPC does not define becomes
// UNKNOWN.
absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace heapbroker
#endif  // COMMON_GRPC_STATUS_H_
