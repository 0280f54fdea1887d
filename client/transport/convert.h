// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The protocol's messages as the client's plain values. The daemon is trusted,
// but a broken or foreign one must not crash an application: what makes no
// sense is INTERNAL.
#ifndef CLIENT_TRANSPORT_CONVERT_H_
#define CLIENT_TRANSPORT_CONVERT_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "google/protobuf/repeated_field.h"
#include "heapbroker/client.h"
#include "heapbroker/memory_watch.h"
#include "heapbroker/requests.h"
#include "heapbroker/types.h"
#include "heapbroker/v1/broker.pb.h"
#include "heapbroker/v1/memory.pb.h"
#include "heapbroker/v1/session.pb.h"

namespace heapbroker {

v1::MemoryKind ToMessage(MemoryKind kind);
v1::BlockRequest ToMessage(const AllocationRequest& request);
v1::AllocateRequest ToMessage(absl::Span<const AllocationRequest> requests,
                              const AllocateOptions& options);
v1::OpenSegmentRequest ToMessage(const SegmentOptions& options);
v1::Checksum ToMessage(Checksum checksum);
v1::WatchRequest ToMessage(const std::vector<IdleMemory>& idle);

Checksum FromMessage(const v1::Checksum& message);
GiveBackRequest FromMessage(const v1::GiveBack& message);
absl::StatusOr<std::vector<BrokerDevice>> DevicesFrom(const v1::Welcome& welcome);
// `device_count`: a block must lie on one of that many.
absl::StatusOr<ImportFacts> FromMessage(const v1::Block& message, size_t device_count);
// All of them, in order, or the first error.
absl::StatusOr<std::vector<ImportFacts>> FromMessage(
    const google::protobuf::RepeatedPtrField<v1::Block>& messages, size_t device_count);

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_CONVERT_H_
