// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/segment.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/transport/connection.h"
#include "common/base/status_macros.h"

namespace heapbroker {

Segment::Segment(std::shared_ptr<Connection> connection, Attachment attachment)
    : connection_(std::move(connection)), attachment_(std::move(attachment)) {}

Segment::~Segment() { Close().IgnoreError(); }

Segment::Segment(Segment&& other) noexcept
    : connection_(std::move(other.connection_)),
      attachment_(std::exchange(other.attachment_, {})) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  if (this == &other) return *this;
  Close().IgnoreError();
  connection_ = std::move(other.connection_);
  attachment_ = std::exchange(other.attachment_, {});
  return *this;
}

bool Segment::lost() const { return attached() && connection_->lost(); }

absl::Status Segment::Seal(Checksum checksum, const CallOptions& call) {
  if (!attached()) return absl::NotFoundError("this segment is not attached any more");
  if (!is_writer()) {
    return absl::FailedPreconditionError(
        absl::StrCat("segment ", name(),
                     " is not this process's to seal: it is sealed, or another one fills it"));
  }
  HB_RETURN_IF_ERROR(
      connection_->SealSegment(id(), checksum, CallLimits(call, connection_->call_timeout())));
  connection_->holdings().SealSegment(id());
  attachment_.writer = false;
  attachment_.checksum = checksum;
  return absl::OkStatus();
}

absl::Status Segment::Close(const CallOptions& call) {
  if (!attached()) return absl::OkStatus();
  const absl::Status status =
      connection_->CloseSegment(id(), CallLimits(call, connection_->call_timeout()));
  if (!status.ok() && !absl::IsNotFound(status) && !absl::IsUnavailable(status)) return status;
  connection_->holdings().RemoveSegment(id());
  connection_ = nullptr;
  attachment_ = {};
  return status;
}

}  // namespace heapbroker
