// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/fill_job.h"

#include "absl/status/statusor.h"
#include "daemon/core/refusal.h"

namespace heapbroker {

std::optional<FillJob::Question> FillJob::Work(DeviceMemory& device) {
  while (!over()) {
    if (item().reuse) {
      Clear(device);
    } else if (required_) {
      Allocate(device);
    } else {
      AskForSize(device);
      if (required_) return Question{result_.made.size(), {*size_, *required_}};
    }
  }
  return std::nullopt;
}

void FillJob::Decided(const absl::Status& status) {
  if (!status.ok()) Fail(status);
}

void FillJob::AskForSize(DeviceMemory& device) {
  if (!size_) size_ = item().planned;
  const absl::StatusOr<Bytes> required = device.RequiredSize(item().block_class, *size_);
  Note(required.status(), required.value_or(Bytes()));
  if (required.ok()) {
    required_ = *required;
  } else {
    Fail(required.status());
  }
}

void FillJob::Allocate(DeviceMemory& device) {
  absl::StatusOr<DeviceAllocation> made = device.Allocate(item().block_class, *required_);
  Note(made.status());
  if (made.ok()) return Made(*std::move(made));
  Fail(made.status());
  result_.out_of_memory = absl::IsResourceExhausted(result_.status);
}

void FillJob::Clear(DeviceMemory& device) {
  const absl::Status status = device.Clear(item().block_class, *item().reuse);
  Note(status);
  if (!status.ok()) return Fail(status);
  Made(*item().reuse);
}

void FillJob::Made(DeviceAllocation allocation) {
  size_ = required_ = std::nullopt;
  result_.made.push_back(std::move(allocation));
}

void FillJob::Fail(absl::Status status) {
  required_ = std::nullopt;
  const bool too_much = absl::IsResourceExhausted(status) || absl::IsOutOfRange(status);
  if (too_much && size_ && *size_ > item().exact) {
    // Rounding up is the daemon's wish, not the caller's: it may not be why he is refused.
    size_ = item().exact;
    return;
  }
  result_.status = std::move(status);
}

void FillJob::Note(const absl::Status& status, Bytes required) {
  DeviceAnswer answer{required, status.code(), std::nullopt};
  if (const std::optional<Refusal> refusal = RefusalOf(status)) answer.limit = refusal->limit;
  answers_.push_back(answer);
}

}  // namespace heapbroker
