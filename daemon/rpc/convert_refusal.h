// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Why there was no memory, as details that a client's program can read.
#ifndef DAEMON_RPC_CONVERT_REFUSAL_H_
#define DAEMON_RPC_CONVERT_REFUSAL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/core/refusal.h"
#include "heapbroker/v1/broker.pb.h"

namespace heapbroker {

v1::MemoryRefusal::Limit LimitMessage(LimitKind limit);

v1::MemoryRefusal RefusalMessage(const Refusal& refusal, uint32_t device_index);

// `status` with `refusal` as its details (common/grpc/status.h). It must not be OK.
absl::Status WithDetails(absl::Status status, const Refusal& refusal, uint32_t device_index);

// `status` with its own refusal as its details, where it is one of memory
// (RefusalOf); any other as it is.
absl::Status WithRefusalDetails(const absl::Status& status, uint32_t device_index);

}  // namespace heapbroker
#endif  // DAEMON_RPC_CONVERT_REFUSAL_H_
