// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Leased buffers that both the host and the device reach.
#ifndef CLIENT_SRC_STAGING_RING_H_
#define CLIENT_SRC_STAGING_RING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/src/copy_commands.h"
#include "client/transport/call_limits.h"
#include "heapbroker/client.h"
#include "heapbroker/lease.h"
#include "heapbroker/transfers.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// One of them, with the commands that copy into or out of it.
struct StagingSlot {
  Lease lease;
  DeviceBuffer buffer;  // Goes before the lease; owned by the copying queue's family.
  std::unique_ptr<CopyCommands> commands;

  void* host() const { return buffer.mapped(); }
};

// Used one after the other, in a circle. Not thread-safe.
class StagingRing {
 public:
  // All in options are checked; `importer` must outlive it.
  StagingRing(const Client& client, VulkanImporter& importer, const CopyQueue& queue,
              MemoryKind kind, const TransfersOptions& options);
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  // Sees to it that there is a slot, and more if they are of use for `pieces` and there
  // is memory. Takes as long as `limits` say, and each call that leases as long as calls
  // do by default at most. Errors of Client::Allocate, VulkanImporter::Import and
  // VulkanStatus.
  absl::Status Prepare(uint64_t pieces, const CallLimits& limits);

  size_t size() const { return slots_.size(); }
  StagingSlot& at(uint64_t piece) { return *slots_[piece % slots_.size()]; }
  // Until the device is done with all of them; the first error.
  absl::Status Wait();

  // Gives all back. The first error; there is none left in any case.
  absl::Status End(const CallOptions& call = {});

 private:
  using Slots = std::vector<std::unique_ptr<StagingSlot>>;

  // Whether it is worth waiting for memory that others hold.
  enum class IfNone { kWait, kDoWithout };

  // Leases, imports and acquires.
  absl::StatusOr<Slots> Make(size_t count, IfNone if_none, const CallLimits& limits);
  // Imports and acquires what is leased.
  absl::Status Take(const Slots& slots, const CallLimits& limits);
  // Where the session of the slots was lost: those of the next one, if there is one.
  absl::Status ReplaceLost(const CallLimits& limits);

  Client client_;
  VulkanImporter& importer_;
  const CopyQueue queue_;
  const MemoryKind kind_;
  const TransfersOptions options_;
  Slots slots_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_STAGING_RING_H_
