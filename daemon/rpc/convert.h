// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The messages of MemoryBroker as the core's values, and back.
//
// What only a message can get wrong is checked here: a field that must be set,
// an enum that this version does not know, fields that exclude each other. Sizes,
// alignments and ids are checked by the core, which knows their limits. Every
// error is INVALID_ARGUMENT and begins with the field's name.
#ifndef DAEMON_RPC_CONVERT_H_
#define DAEMON_RPC_CONVERT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "daemon/core/device_info.h"
#include "daemon/core/requests.h"
#include "heapbroker/v1/broker.pb.h"

namespace heapbroker {

absl::StatusOr<std::vector<BlockRequest>> BlockRequestsOf(const v1::AllocateRequest& message);
absl::StatusOr<std::vector<BlockId>> BlockIdsOf(const v1::ReleaseRequest& message);
absl::StatusOr<OpenSegmentRequest> OpenSegmentRequestOf(const v1::OpenSegmentRequest& message);
absl::StatusOr<SegmentId> SegmentIdOf(const v1::SealSegmentRequest& message);
absl::StatusOr<SegmentId> SegmentIdOf(const v1::CloseSegmentRequest& message);
absl::StatusOr<Checksum> ChecksumOf(const v1::SealSegmentRequest& message);

// `device` is the one that granted.
v1::AllocateResponse AllocateMessage(const Grant& grant, const DeviceInfo& device);
v1::OpenSegmentResponse OpenSegmentMessage(const SegmentView& segment, const DeviceInfo& device);
v1::Checksum ChecksumMessage(const Checksum& checksum);

}  // namespace heapbroker
#endif  // DAEMON_RPC_CONVERT_H_
