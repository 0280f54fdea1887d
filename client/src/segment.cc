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

Segment::~Segment() { GiveUp(); }

Segment::Segment(Segment&& other) noexcept
    : connection_(std::move(other.connection_)),
      attachment_(std::exchange(other.attachment_, {})),
      may_be_sealed_(other.may_be_sealed_),
      may_be_closed_(other.may_be_closed_) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  if (this == &other) return *this;
  GiveUp();
  connection_ = std::move(other.connection_);
  attachment_ = std::exchange(other.attachment_, {});
  may_be_sealed_ = other.may_be_sealed_;
  may_be_closed_ = other.may_be_closed_;
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
  const absl::Status sealed =
      connection_->SealSegment(id(), checksum, CallLimits(call, connection_->call_timeout()));
  may_be_sealed_ = true;
  HB_RETURN_IF_ERROR(sealed);
  connection_->holdings().SealSegment(id());
  attachment_.writer = false;
  attachment_.checksum = checksum;
  return absl::OkStatus();
}

void Segment::Forget() {
  connection_->holdings().RemoveSegment(id());
  connection_ = nullptr;
  attachment_ = {};
}

void Segment::GiveUp() {
  // Nor would the answer say anything where another close may have arrived.
  if (!may_be_closed_) Close().IgnoreError();
  CloseLater();
}

absl::Status Segment::Close(const CallOptions& call) {
  if (!attached()) return absl::OkStatus();
  const absl::Status status =
      connection_->CloseSegment(id(), CallLimits(call, connection_->call_timeout()));
  if (status.ok() || absl::IsNotFound(status)) {
    connection_->EndClaim({attachment_.device_index, name()});
    Forget();
    return status;
  }
  may_be_closed_ = true;
  // The session may have outlived the call: then the daemon still has the attachment.
  if (absl::IsUnavailable(status)) CloseLater();
  return status;
}

void Segment::CloseLater() {
  // In a forked child another thread's lock would never be free.
  if (!attached() || !connection_->CheckProcess().ok()) return;
  connection_->CloseSegmentLater({attachment_.device_index, name()}, id(),
                                 !is_writer() || may_be_sealed_);
  Forget();
}

}  // namespace heapbroker
