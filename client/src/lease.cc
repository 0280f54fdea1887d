// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/lease.h"

#include <map>
#include <utility>

#include "client/transport/connection.h"

namespace heapbroker {
namespace {

// Trying again cannot help: the daemon does not have the lease any more.
bool IsGone(const absl::Status& status) {
  return status.ok() || absl::IsNotFound(status) || absl::IsUnavailable(status);
}

}  // namespace

Lease::Lease(std::shared_ptr<Connection> connection, std::shared_ptr<const MemoryBlock> block)
    : connection_(std::move(connection)), block_(std::move(block)) {}

Lease::~Lease() { Release().IgnoreError(); }

Lease::Lease(Lease&& other) noexcept
    : connection_(std::move(other.connection_)), block_(std::move(other.block_)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  Release().IgnoreError();
  connection_ = std::move(other.connection_);
  block_ = std::move(other.block_);
  return *this;
}

const ImportFacts& Lease::facts() const {
  static constexpr ImportFacts kNothing;
  return held() ? block_->facts() : kNothing;
}

absl::StatusOr<int> Lease::fd() const {
  if (!held()) return absl::FailedPreconditionError("this lease holds nothing");
  return block_->fd();
}

absl::Status Lease::Release() {
  if (!held()) return absl::OkStatus();
  const uint64_t id = block_->facts().block_id;
  const absl::Status status = connection_->Release({id});
  if (!IsGone(status)) return status;
  block_ = nullptr;
  connection_ = nullptr;
  return status;
}

absl::Status ReleaseAll(std::vector<Lease> leases) {
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
  for (const auto& [called, ids] : ids_by_target) {
    const absl::Status status = called.first->Release(ids);
    first.Update(status);
    // One unknown lease refuses its whole call: then each goes by itself, by its
    // destructor. After any other error that would only take long.
    if (absl::IsNotFound(status)) continue;
    for (Lease& lease : leases) {
      if (lease.held() && target(lease) == called) lease.block_ = nullptr;
    }
  }
  return first;
}

}  // namespace heapbroker
