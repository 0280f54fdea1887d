// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/live_calls.h"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace heapbroker {

absl::Status ShuttingDown() {
  return absl::UnavailableError("the daemon is shutting down; connect again when it is back");
}

bool LiveCalls::Add(const std::shared_ptr<Call>& call) {
  MutexLock lock(mutex_);
  if (closed_) return false;
  calls_.emplace(call.get(), Entry{.call = call});
  return true;
}

absl::Status LiveCalls::Arrive(Call* call, const Caller& caller) {
  const Standing standing = standing_(caller);
  MutexLock lock(mutex_);
  Entry& entry = calls_[call];
  entry.arrived = true;
  ++arrived_;
  if (closed_) return ShuttingDown();
  const absl::Status room = CheckRoomFor(standing);
  if (!room.ok()) return room;
  entry.counted_as = standing;
  ++counted_;
  if (standing == Standing::kNobody) ++without_session_;
  return absl::OkStatus();
}

absl::Status LiveCalls::CheckRoomFor(Standing caller) const {
  if (caller == Standing::kNobody && without_session_ >= limits_.without_session) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the daemon has ", without_session_, " of ", limits_.without_session,
                     " calls without a session; read the answers of yours, or send a session's "
                     "token with each"));
  }
  const bool administrator = caller == Standing::kAdministrator;
  const size_t limit = limits_.all + (administrator ? limits_.reserved : 0);
  if (counted_ < limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the daemon has ", counted_, " of ", limit,
                   " calls; read the answers of yours, or try again later"));
}

void LiveCalls::Remove(Call* call) {
  MutexLock lock(mutex_);
  const auto found = calls_.find(call);
  if (found->second.arrived) --arrived_;
  if (found->second.counted_as.has_value()) --counted_;
  if (found->second.counted_as == Standing::kNobody) --without_session_;
  calls_.erase(found);
  // Under the mutex: whoever waits may destroy this object as soon as it sees
  // that nothing is left.
  if (closed_) removed_.NotifyAll();
}

void LiveCalls::Close() {
  MutexLock lock(mutex_);
  closed_ = true;
}

std::vector<std::shared_ptr<Call>> LiveCalls::Arrived() const {
  std::vector<std::shared_ptr<Call>> arrived;
  MutexLock lock(mutex_);
  for (const auto& [address, entry] : calls_) {
    if (!entry.arrived) continue;
    if (std::shared_ptr<Call> call = entry.call.lock()) arrived.push_back(std::move(call));
  }
  return arrived;
}

bool LiveCalls::WaitUntilNoneArrived(std::chrono::steady_clock::time_point end) {
  MutexLock lock(mutex_);
  while (arrived_ > 0) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    removed_.WaitFor(mutex_, left);
  }
  return true;
}

void LiveCalls::WaitUntilEmpty() {
  MutexLock lock(mutex_);
  while (!calls_.empty()) removed_.Wait(mutex_);
}

}  // namespace heapbroker
