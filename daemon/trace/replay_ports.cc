// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/replay_ports.h"

#include "common/base/status_macros.h"

namespace heapbroker {

bool ReplayExecutor::RunOne(std::deque<Posted>& jobs, absl::Time posted_by) {
  if (jobs.empty() || jobs.front().time > posted_by) return false;
  DeviceJob job = std::move(jobs.front().job);
  jobs.pop_front();
  std::move(job)();
  return true;
}

absl::Status ReplayDevice::RecordedFailure() const {
  return absl::Status(job_->code, "the recorded device failed here");
}

bool ReplayDevice::RefusesNow() const {
  return job_ != nullptr &&
         std::find(job_->refused.begin(), job_->refused.end(), asked_ - 1) != job_->refused.end();
}

absl::StatusOr<Bytes> ReplayDevice::RequiredSize(BlockClass block_class, Bytes size) {
  worked_ = true;
  if (job_ != nullptr && asked_ < job_->required.size()) {
    const Bytes required = std::max(size, job_->required[asked_++]);
    sizes_.Learn(block_class, size, required);
    return required;
  }
  if (job_ != nullptr && job_->code != absl::StatusCode::kOk) return RecordedFailure();
  if (job_ != nullptr) differs_ = true;
  // Says no where the device would.
  HB_RETURN_IF_ERROR(device_.RequiredSize(block_class, size).status());
  return sizes_.Required(block_class, size);
}

absl::StatusOr<DeviceAllocation> ReplayDevice::Allocate(BlockClass block_class,
                                                        Bytes allocation_size) {
  if (RefusesNow()) {
    // What was refused and is not the last was tried again with less.
    if (job_->code == absl::StatusCode::kOk || asked_ < job_->required.size()) {
      return absl::ResourceExhaustedError("the recorded device refused this size");
    }
    return RecordedFailure();
  }
  HB_ASSIGN_OR_RETURN(DeviceAllocation made, device_.Allocate(block_class, allocation_size));
  allocated_bytes_ += static_cast<double>(allocation_size.count());
  return made;
}

absl::Status ReplayDevice::Clear(BlockClass block_class, const DeviceAllocation& allocation) {
  worked_ = true;
  // Neither a size nor an allocation failed, then: it was this.
  if (job_ != nullptr && job_->code != absl::StatusCode::kOk && job_->refused.empty() &&
      asked_ >= job_->required.size()) {
    return RecordedFailure();
  }
  return device_.Clear(block_class, allocation);
}

void ReplayDevice::Follow(const JobFilled& job) {
  job_ = &job;
  asked_ = 0;
  differs_ = false;
}

bool ReplayDevice::EndFollowing() {
  const bool same = !differs_ && asked_ == job_->required.size();
  job_ = nullptr;
  return same;
}

}  // namespace heapbroker
