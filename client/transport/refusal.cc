// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/refusal.h"

#include "absl/strings/cord.h"
#include "google/rpc/status.pb.h"
#include "heapbroker/v1/broker.pb.h"

namespace heapbroker {

absl::Status WithRefusal(absl::Status status, const std::string& details) {
  google::rpc::Status message;
  if (status.ok() || details.empty() || !message.ParseFromString(details)) return status;
  for (const google::protobuf::Any& detail : message.details()) {
    if (!detail.Is<v1::MemoryRefusal>()) continue;
    status.SetPayload(kRefusalTypeUrl, absl::Cord(detail.value()));
    return status;
  }
  return status;
}

}  // namespace heapbroker
