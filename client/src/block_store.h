// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Where DeviceAllocators get their blocks, and where they leave them.
#ifndef CLIENT_SRC_BLOCK_STORE_H_
#define CLIENT_SRC_BLOCK_STORE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/idle_leases.h"
#include "client/src/leased_memory.h"
#include "client/transport/call_limits.h"
#include "client/transport/process_mark.h"
#include "common/base/mutex.h"
#include "heapbroker/client.h"
#include "heapbroker/local_cache.h"
#include "heapbroker/memory_watch.h"
#include "heapbroker/requests.h"
#include "heapbroker/types.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// The cache behind LocalCache. Whoever leaves a block here does not wait for a call:
// what has to go home goes on a thread of its own, except what the daemon asked for,
// which goes on the thread that was told, within the daemon's time. Thread-safe.
class BlockStore {
 public:
  using Block = std::unique_ptr<LeasedMemory>;

  BlockStore(const Client& client, VulkanImporter& importer, const LocalCacheLimits& limits);
  // Gives all back.
  ~BlockStore();
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;

  // Begins to watch the session; once, before anything else.
  absl::Status Start(WatchHandlers handlers);

  // An idle block; null where none fits.
  Block TakeIdle(const std::string& kind, Bytes size);
  // Leases and imports one. `limits` takes the place of what `options` say of time and
  // cancellation. Errors of Client::Allocate and VulkanImporter::Import.
  absl::StatusOr<Block> LeaseBlock(const AllocationRequest& request, AllocateOptions options,
                                   const std::string& kind, const CallLimits& limits);
  // Nobody uses it any more, nor the device.
  void Leave(Block block);
  // Both wait for the daemon's answers. Trim gives back down to so many idle bytes and
  // waits for what is on its way, too.
  absl::Status GiveBack(std::vector<Block> blocks);
  absl::Status Trim(Bytes target, const CallLimits& limits);

  // That Trim would give back, or wait for.
  bool HasSpareBlocks() const;

  LocalCacheStats stats() const;
  VulkanImporter& importer() { return importer_; }
  std::vector<BrokerDevice> devices() const { return client_.devices(); }
  CallLimits LimitsOf(const CallOptions& call) const {
    return CallLimits(call, client_.call_timeout());
  }
  // In a process that was forked off the one that made it nothing of it can be used.
  const ProcessMark& process() const { return process_; }

 private:
  void Run();
  // What has to be done by now.
  struct Work {
    std::vector<Block> going;
    std::vector<IdleMemory> report;
    bool report_changed = false;
    bool ends = false;  // There is no more.
  };
  Work NextWork();  // Waits for it.
  // The calls of GiveBack, which its caller has counted.
  absl::Status Return(std::vector<Block> blocks, const CallOptions& call = {});
  // Until no thread is in Return.
  absl::Status AwaitReturns(const CallLimits& limits);
  void Answer(const GiveBackRequest& request);
  void SessionLost();
  // The daemon is told nothing more, and asks for nothing: what is kept from now on would
  // count as in use.
  void WatchEnded();

  Client client_;
  VulkanImporter& importer_;
  const std::optional<std::chrono::nanoseconds> max_idle_;  // Unset: no limit.
  const ProcessMark process_;

  mutable Mutex mutex_;
  CondVar changed_;
  Bytes max_bytes_ ABSL_GUARDED_BY(mutex_);
  IdleLeases idle_ ABSL_GUARDED_BY(mutex_);
  std::vector<Block> going_ ABSL_GUARDED_BY(mutex_);  // For the thread to give back.
  uint32_t giving_back_ ABSL_GUARDED_BY(mutex_) = 0;  // Threads that do so now.
  bool report_changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  LocalCacheStats stats_ ABSL_GUARDED_BY(mutex_);

  std::thread thread_;
  std::unique_ptr<MemoryWatch> watch_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_BLOCK_STORE_H_
