// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/health_service.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// More than a machine has clients that watch; each costs what any open call does.
constexpr size_t kMaxWatchers = 512;

bool IsKnown(const std::string& service) {
  return service.empty() || service == "heapbroker.v1.MemoryBroker" ||
         service == "heapbroker.v1.PoolStats" || service == "heapbroker.v1.Admin";
}

}  // namespace

void HealthService::SetHealth(Health health) {
  std::vector<Watcher> watchers;
  {
    MutexLock lock(mutex_);
    if (health_ == health) return;
    health_ = health;
    for (const auto& [id, watcher] : watchers_) {
      if (watcher.has_value()) watchers.push_back(*watcher);
    }
  }
  for (const Watcher& watcher : watchers) watcher.Changed();
}

HealthCheckResponse HealthService::Now(bool known) const {
  HealthCheckResponse response;
  if (!known) {
    response.set_status(HealthCheckResponse::SERVICE_UNKNOWN);
    return response;
  }
  MutexLock lock(mutex_);
  response.set_status(health_ == Health::kServing ? HealthCheckResponse::SERVING
                                                  : HealthCheckResponse::NOT_SERVING);
  return response;
}

void HealthService::Check(const Caller& /*caller*/, const HealthCheckRequest& request,
                          UnaryReply<HealthCheckResponse> reply) {
  if (IsKnown(request.service())) return reply.Finish(Now(/*known=*/true));
  reply.Finish(absl::NotFoundError(
      absl::StrCat("service: there is no \"", Printable(request.service()),
                   "\" here; known are \"\" for the daemon as a whole, "
                   "heapbroker.v1.MemoryBroker, heapbroker.v1.PoolStats and heapbroker.v1.Admin")));
}

void HealthService::Watch(const Caller& /*caller*/, const HealthCheckRequest& request,
                          StreamReply<HealthCheckResponse> reply) {
  const bool known = IsKnown(request.service());
  reply.SetSource([this, known] { return Now(known); });
  const std::optional<uint64_t> id =
      AddWatcher(known ? std::optional<Watcher>(reply) : std::nullopt);
  if (!id.has_value()) {
    return reply.Finish(absl::ResourceExhaustedError(
        absl::StrCat("the daemon has ", kMaxWatchers,
                     " streams of Health.Watch, and no more; end one, or call Check")));
  }
  reply.OnCancelled([this, id = *id] {
    MutexLock lock(mutex_);
    watchers_.erase(id);
  });
  reply.Changed();
}

std::optional<uint64_t> HealthService::AddWatcher(std::optional<Watcher> watcher) {
  MutexLock lock(mutex_);
  if (watchers_.size() == kMaxWatchers) return std::nullopt;
  watchers_.emplace(++last_watcher_, std::move(watcher));
  return last_watcher_;
}

}  // namespace heapbroker
