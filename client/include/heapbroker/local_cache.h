// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Leased blocks that nobody uses at the moment, kept for the next one.
#ifndef HEAPBROKER_LOCAL_CACHE_H_
#define HEAPBROKER_LOCAL_CACHE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "heapbroker/cancellation.h"
#include "heapbroker/client.h"
#include "heapbroker/export.h"
#include "heapbroker/memory_watch.h"
#include "heapbroker/units.h"

namespace heapbroker {

class BlockStore;
class VulkanImporter;

struct LocalCacheLimits {
  // Idle blocks together, as the device allocated them; the oldest go first. Zero keeps
  // nothing.
  Bytes max_bytes = MiB(256);
  // How long a block stays idle.
  absl::Duration max_idle = absl::Seconds(10);
};

struct LocalCacheStats {
  Bytes idle{};  // What the daemon shows as idle in clients, of this one.
  uint64_t idle_blocks = 0;
  uint64_t hits = 0;    // Blocks that were used again, since the cache was made.
  uint64_t misses = 0;  // Blocks that had to be leased.
  Bytes given_back_on_request{};
};

// What DeviceAllocators share: the session and the importer that their blocks come
// from, and blocks that are wholly free, still leased and imported, until
//  - an allocator needs one,
//  - max_idle has passed or max_bytes would be,
//  - the daemon asks for memory because others need it, which is answered at once, or
//  - the cache ends, which is when the last of its allocators and of the pointers to it
//    is gone.
//
// It tells the daemon what it keeps, so that it counts as idle, not as in use. For that
// it watches the session, of which there can be one watch only: use one LocalCache for
// each Client, no Client::Watch beside it, and pass handlers of your own to Start.
//
// What it gives back nobody needs the contents of, so it never uses the queue. One
// thread of its own, which sleeps while nothing changes, and those of the watch.
// Thread-safe. Where the session was lost, blocks that were leased in it are no longer
// kept; those of the next one are. Once the watch has ended for good
// (WatchHandlers::on_end), because another one took its place or the daemon knows none,
// nothing is kept: it would count as in use. In a forked child every call is
// FAILED_PRECONDITION; it may be dropped.
class HEAPBROKER_EXPORT LocalCache {
 public:
  // `importer` must outlive the cache. `handlers` are called as those of Client::Watch,
  // after the cache has done its own part.
  //   INVALID_ARGUMENT  max_idle is below zero
  //   or an error of Client::Watch
  static absl::StatusOr<std::shared_ptr<LocalCache>> Start(const Client& client,
                                                           VulkanImporter& importer,
                                                           const LocalCacheLimits& limits = {},
                                                           WatchHandlers handlers = {});
  // Gives everything back.
  ~LocalCache();
  LocalCache(const LocalCache&) = delete;
  LocalCache& operator=(const LocalCache&) = delete;

  // Gives idle blocks back, oldest first, until at most `target` bytes are idle; when
  // this returns, the daemon has them. Errors of ReleaseAll.
  absl::Status Trim(Bytes target = Bytes(0), const CallOptions& call = {});

  // Zeros in a forked child.
  LocalCacheStats stats() const;

 private:
  friend class DeviceAllocator;

  explicit LocalCache(std::unique_ptr<BlockStore> store);
  std::unique_ptr<BlockStore> store_;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_LOCAL_CACHE_H_
