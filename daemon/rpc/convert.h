// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The messages of MemoryBroker as the core's values, and back.
//
// What only a message can get wrong is checked here: a field that must be set,
// an enum that this version does not know, fields that exclude each other. Sizes,
// alignments and ids are checked by the core, which knows their limits; a list is
// counted before it is looked at, so that no refused request costs, or leaves in a
// recording, more than one that is granted. Every error is INVALID_ARGUMENT and begins
// with the field's name.
#ifndef DAEMON_RPC_CONVERT_H_
#define DAEMON_RPC_CONVERT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/device_info.h"
#include "daemon/core/requests.h"
#include "heapbroker/v1/broker.pb.h"

namespace heapbroker {

// When a call came, and until when its client waits for the answer.
struct CallTimes {
  absl::Time now;
  absl::Time deadline = absl::InfiniteFuture();
};

// `device_index` is left to the caller.
absl::StatusOr<AllocateRequest> AllocateRequestOf(const v1::AllocateRequest& message,
                                                  const CallTimes& times);

// What a Release is about: blocks, or else a request.
struct ReleaseTarget {
  std::vector<BlockId> blocks;
  RequestId request;
};
absl::StatusOr<ReleaseTarget> ReleaseTargetOf(const v1::ReleaseRequest& message);

// `device_index` is left to the caller.
absl::StatusOr<OpenSegmentRequest> OpenSegmentRequestOf(const v1::OpenSegmentRequest& message,
                                                        const CallTimes& times);
absl::StatusOr<SegmentId> SegmentIdOf(const v1::SealSegmentRequest& message);
absl::StatusOr<SegmentId> SegmentIdOf(const v1::CloseSegmentRequest& message);
absl::StatusOr<Checksum> ChecksumOf(const v1::SealSegmentRequest& message);

// `device` is the one that granted.
v1::AllocateResponse AllocateMessage(const Grant& grant, const DeviceInfo& device);
v1::OpenSegmentResponse OpenSegmentMessage(const SegmentView& segment, const DeviceInfo& device);
v1::Checksum ChecksumMessage(const Checksum& checksum);

// A field that says which device, where it is set.
template <typename Message>
std::optional<uint32_t> DeviceIndexIn(const Message& message) {
  return message.has_device_index() ? std::optional<uint32_t>(message.device_index())
                                    : std::nullopt;
}

}  // namespace heapbroker
#endif  // DAEMON_RPC_CONVERT_H_
