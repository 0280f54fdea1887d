// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/replay_ports.h"

#include "common/base/status_macros.h"
#include "daemon/core/refusal.h"

namespace heapbroker {
namespace {

absl::Status RecordedStatus(const DeviceAnswer& answer) {
  if (answer.code == absl::StatusCode::kOk) return absl::OkStatus();
  if (!answer.limit) return absl::Status(answer.code, "the recorded device failed here");
  Refusal refusal;
  refusal.limit = *answer.limit;
  return RefusalStatus(refusal);
}

}  // namespace

bool ReplayExecutor::RunOne(std::deque<Posted>& jobs, absl::Time posted_by) {
  if (jobs.empty() || jobs.front().time > posted_by) return false;
  DeviceJob job = std::move(jobs.front().job);
  jobs.pop_front();
  std::move(job)();
  return true;
}

const DeviceAnswer* ReplayDevice::NextAnswer() {
  worked_ = true;
  if (job_ == nullptr) return nullptr;
  if (asked_ < job_->answers.size()) return &job_->answers[asked_++];
  differs_ = true;
  return nullptr;
}

absl::StatusOr<Bytes> ReplayDevice::RequiredSize(BlockClass block_class, Bytes size) {
  const DeviceAnswer* const answer = NextAnswer();
  if (answer == nullptr) {
    const Bytes required = sizes_.Required(block_class, size);
    // Says no where the device would.
    HB_RETURN_IF_ERROR(device_.RequiredSize(block_class, required).status());
    return required;
  }
  HB_RETURN_IF_ERROR(RecordedStatus(*answer));
  const Bytes required = std::max(size, answer->required);
  sizes_.Learn(block_class, size, required);
  return required;
}

absl::StatusOr<DeviceAllocation> ReplayDevice::Allocate(BlockClass block_class,
                                                        Bytes allocation_size) {
  if (const DeviceAnswer* const answer = NextAnswer()) {
    HB_RETURN_IF_ERROR(RecordedStatus(*answer));
  }
  HB_ASSIGN_OR_RETURN(DeviceAllocation made, device_.Allocate(block_class, allocation_size));
  allocated_bytes_ += static_cast<double>(allocation_size.count());
  return made;
}

absl::Status ReplayDevice::Clear(BlockClass block_class, const DeviceAllocation& allocation) {
  if (const DeviceAnswer* const answer = NextAnswer()) return RecordedStatus(*answer);
  return device_.Clear(block_class, allocation);
}

void ReplayDevice::Follow(const JobFilled& job) {
  job_ = &job;
  asked_ = 0;
  differs_ = false;
}

bool ReplayDevice::EndFollowing() {
  const bool same = !differs_ && asked_ == job_->answers.size();
  job_ = nullptr;
  return same;
}

}  // namespace heapbroker
