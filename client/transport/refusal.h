// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The details of a gRPC status, on their way to RefusalOf.
#ifndef CLIENT_TRANSPORT_REFUSAL_H_
#define CLIENT_TRANSPORT_REFUSAL_H_

#include <string>

#include "absl/status/status.h"

namespace heapbroker {

// Type URL of the status payload that holds a serialised v1::MemoryRefusal.
inline constexpr char kRefusalTypeUrl[] = "type.googleapis.com/heapbroker.v1.MemoryRefusal";

// `status` with the refusal that is in `details`, a serialised google.rpc.Status.
// Details that are not, or hold none, change nothing: the message says it, too.
absl::Status WithRefusal(absl::Status status, const std::string& details);

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_REFUSAL_H_
