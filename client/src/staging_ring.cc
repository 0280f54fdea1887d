// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/staging_ring.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace heapbroker {

StagingRing::StagingRing(const Client& client, VulkanImporter& importer, const CopyQueue& queue,
                         MemoryKind kind, const TransfersOptions& options)
    : client_(client), importer_(importer), queue_(queue), kind_(kind), options_(options) {}

StagingRing::~StagingRing() { End().IgnoreError(); }

absl::StatusOr<StagingRing::Slots> StagingRing::Make(size_t count, IfNone if_none,
                                                     const CallLimits& limits) {
  const CallLimits here(std::min(limits.left(), client_.call_timeout()), limits.cancellation());
  AllocateOptions options{.device_index = options_.device_index,
                          .timeout = here.left(),
                          .cancellation = here.cancellation()};
  if (if_none == IfNone::kDoWithout) options.max_wait = absl::ZeroDuration();
  const std::vector<AllocationRequest> requests(
      count, {.size = options_.piece, .memory = kind_, .transient = true});
  HB_ASSIGN_OR_RETURN(std::vector<Lease> leases, client_.AllocateAll(requests, options));
  Slots slots;
  for (Lease& lease : leases) {
    slots.push_back(std::make_unique<StagingSlot>());
    slots.back()->lease = std::move(lease);
  }
  const absl::Status taken = Take(slots, here);
  if (taken.ok()) return slots;
  for (const auto& slot : slots) {
    slot->commands.reset();
    slot->buffer = DeviceBuffer();
    // Nobody has the time of a call for each of them.
    slot->lease.ReleaseLater();
  }
  return taken;
}

absl::Status StagingRing::Take(const Slots& slots, const CallLimits& limits) {
  for (const auto& slot : slots) {
    HB_ASSIGN_OR_RETURN(slot->buffer, importer_.Import(*slot->lease.block(),
                                                       VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                                           VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                                                       LeftOf(limits)));
    HB_ASSIGN_OR_RETURN(slot->commands, CopyCommands::Create(queue_));
  }
  for (const auto& slot : slots) {
    HB_RETURN_IF_ERROR(slot->commands->Submit(
        [&](VkCommandBuffer commands) { slot->buffer.RecordAcquire(commands, queue_.family); }));
  }
  for (const auto& slot : slots) HB_RETURN_IF_ERROR(slot->commands->Wait());
  return absl::OkStatus();
}

absl::Status StagingRing::ReplaceLost(const CallLimits& limits) {
  const bool lost = std::any_of(slots_.begin(), slots_.end(),
                                [](const auto& slot) { return slot->lease.lost(); });
  if (!lost) return absl::OkStatus();
  // What was imported stays valid, so whoever gets no other one has this at least.
  absl::StatusOr<Slots> made = Make(1, IfNone::kDoWithout, limits);
  if (absl::IsCancelled(made.status())) return std::move(made).status();
  if (made.ok()) slots_ = *std::move(made);
  return absl::OkStatus();
}

absl::Status StagingRing::Prepare(uint64_t pieces, const CallLimits& limits) {
  HB_RETURN_IF_ERROR(ReplaceLost(limits));
  if (slots_.empty()) {
    HB_ASSIGN_OR_RETURN(slots_, Make(1, IfNone::kWait, limits));
  }
  const uint64_t wanted = std::min<uint64_t>(pieces, options_.in_flight);
  if (slots_.size() >= wanted) return absl::OkStatus();
  // More of them make it faster and are worth nobody's waiting.
  absl::StatusOr<Slots> more = Make(wanted - slots_.size(), IfNone::kDoWithout, limits);
  if (absl::IsCancelled(more.status())) return std::move(more).status();
  // One does, whatever went wrong.
  if (!more.ok()) return absl::OkStatus();
  std::move(more->begin(), more->end(), std::back_inserter(slots_));
  return absl::OkStatus();
}

absl::Status StagingRing::Wait() {
  absl::Status first;
  for (const auto& slot : slots_) first.Update(slot->commands->Wait());
  return first;
}

absl::Status StagingRing::End(const CallOptions& call) {
  absl::Status first = Wait();
  for (const auto& slot : slots_) {
    if (slot->lease.lost()) continue;
    first.Update(slot->commands->Submit(
        [&](VkCommandBuffer commands) { slot->buffer.RecordRelease(commands, queue_.family); }));
  }
  first.Update(Wait());
  std::vector<Lease> leases;
  for (const auto& slot : slots_) {
    slot->buffer = DeviceBuffer();
    if (!slot->lease.lost()) leases.push_back(std::move(slot->lease));
  }
  slots_.clear();
  first.Update(ReleaseAll(std::move(leases), call));
  return first;
}

}  // namespace heapbroker
