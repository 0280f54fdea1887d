// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/lease.h"

#include <map>
#include <optional>
#include <utility>

#include "client/transport/connection.h"

namespace heapbroker {
Lease::Lease(std::shared_ptr<Connection> connection, std::shared_ptr<const MemoryBlock> block)
    : connection_(std::move(connection)), block_(std::move(block)) {}

Lease::~Lease() { GiveUp(); }

Lease::Lease(Lease&& other) noexcept
    : connection_(std::move(other.connection_)), block_(std::move(other.block_)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  GiveUp();
  connection_ = std::move(other.connection_);
  block_ = std::move(other.block_);
  return *this;
}

const ImportFacts& Lease::facts() const {
  static constexpr ImportFacts kNothing;
  return held() ? block_->facts() : kNothing;
}

bool Lease::lost() const { return held() && connection_->lost(); }

absl::StatusOr<int> Lease::fd(const CallOptions& call) const {
  if (!held()) return absl::FailedPreconditionError("this lease holds nothing");
  return block_->fd(call);
}

void Lease::Forget() {
  if (held()) connection_->holdings().RemoveLease(facts().block_id);
  block_ = nullptr;
  connection_ = nullptr;
}

void Lease::GiveUp() {
  Release().IgnoreError();
  ReleaseLater();
}

absl::Status Lease::Release(const CallOptions& call) {
  if (!held()) return absl::OkStatus();
  const absl::Status status =
      connection_->Release({facts().block_id}, CallLimits(call, connection_->call_timeout()));
  if (status.ok() || absl::IsNotFound(status)) Forget();
  // The session may have outlived the call: then the daemon still has the lease.
  if (absl::IsUnavailable(status)) ReleaseLater();
  return status;
}

void Lease::ReleaseLater() {
  // In a forked child another thread's lock would never be free.
  if (!held() || !connection_->CheckProcess().ok()) return;
  connection_->ReleaseLater({facts().block_id});
  Forget();
}

absl::Status ReleaseAll(std::vector<Lease> leases, const CallOptions& call) {
  // One call is of one session and one device.
  using Target = std::pair<std::shared_ptr<Connection>, uint32_t>;
  const auto target = [](const Lease& lease) {
    return Target(lease.connection_, lease.facts().device_index);
  };
  std::map<Target, std::vector<uint64_t>> ids_by_target;
  for (const Lease& lease : leases) {
    if (lease.held()) ids_by_target[target(lease)].push_back(lease.facts().block_id);
  }
  absl::Status first;
  std::optional<CallLimits> limits;
  for (const auto& [called, ids] : ids_by_target) {
    if (!limits) limits.emplace(call, called.first->call_timeout());
    const absl::Status status = called.first->Release(ids, *limits);
    first.Update(status);
    bool later = !status.ok() && !absl::IsNotFound(status);
    for (Lease& lease : leases) {
      if (!lease.held() || target(lease) != called) continue;
      if (status.ok()) {
        lease.Forget();
        continue;
      }
      // One unknown lease refuses its whole call: then each goes by itself. After any
      // other error that would only take long.
      if (!later) {
        const absl::Status released = lease.Release(LeftOf(*limits));
        later = !released.ok() && !absl::IsNotFound(released);
      }
      lease.ReleaseLater();
    }
  }
  return first;
}

}  // namespace heapbroker
