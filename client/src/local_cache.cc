// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/local_cache.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/block_store.h"
#include "common/base/status_macros.h"

namespace heapbroker {

absl::StatusOr<std::shared_ptr<LocalCache>> LocalCache::Start(const Client& client,
                                                              VulkanImporter& importer,
                                                              const LocalCacheLimits& limits,
                                                              WatchHandlers handlers) {
  if (limits.max_idle < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("LocalCacheLimits.max_idle is ",
                                                   absl::FormatDuration(limits.max_idle),
                                                   "; zero or more is needed"));
  }
  auto store = std::make_unique<BlockStore>(client, importer, limits);
  HB_RETURN_IF_ERROR(store->Start(std::move(handlers)));
  return std::shared_ptr<LocalCache>(new LocalCache(std::move(store)));
}

LocalCache::LocalCache(std::unique_ptr<BlockStore> store) : store_(std::move(store)) {}

LocalCache::~LocalCache() {
  // The threads are the parent's: nothing here can be waited for, or ended.
  if (store_->process().forked()) static_cast<void>(store_.release());
}

absl::Status LocalCache::Trim(Bytes target, const CallOptions& call) {
  HB_RETURN_IF_ERROR(store_->process().Check());
  return store_->Trim(target, store_->LimitsOf(call));
}

LocalCacheStats LocalCache::stats() const {
  return store_->process().forked() ? LocalCacheStats() : store_->stats();
}

}  // namespace heapbroker
