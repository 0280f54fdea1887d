// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/transfers.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/copy_commands.h"
#include "client/src/hand_over.h"
#include "client/src/imported_memory.h"
#include "client/src/ranges.h"
#include "client/src/staged_copy.h"
#include "client/src/staging_ring.h"
#include "client/src/transfer_course.h"
#include "client/transport/call_limits.h"
#include "client/transport/process_mark.h"
#include "common/base/status_macros.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {
namespace {

using Owner = TransferOptions::Owner;

constexpr uint32_t kMaxInFlight = 64;

absl::Status CheckOptions(const TransfersOptions& options) {
  if (options.piece == Bytes(0)) {
    return absl::InvalidArgumentError("TransfersOptions.piece is 0; it must be at least a byte");
  }
  if (options.in_flight < 1 || options.in_flight > kMaxInFlight) {
    return absl::InvalidArgumentError(absl::StrCat("TransfersOptions.in_flight is ",
                                                   options.in_flight, "; it must be from 1 to ",
                                                   kMaxInFlight));
  }
  return absl::OkStatus();
}

bool HostReadsFast(const DeviceBuffer& buffer) {
  return buffer.mapped() != nullptr &&
         (buffer.facts().memory_property_flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
}

char* HostAt(const DeviceBuffer& buffer, Bytes offset) {
  return static_cast<char*>(buffer.mapped()) + offset.count();
}

// By the host itself; the buffer is its own for that time.
absl::Status UploadMapped(const DeviceBuffer& target, Bytes start, TransferCourse& course,
                          ProducePiece produce) {
  for (uint64_t piece = 0; piece < course.pieces(); ++piece) {
    HB_RETURN_IF_ERROR(course.CheckMayGoOn());
    const Bytes offset = start + course.StartOf(piece);
    const Bytes size = course.SizeOf(piece);
    HB_RETURN_IF_ERROR(produce(HostAt(target, offset), size));
    HB_RETURN_IF_ERROR(target.Flush(offset, size));
    course.Advance(size);
  }
  return absl::OkStatus();
}

absl::Status DownloadMapped(const DeviceBuffer& source, Bytes start, TransferCourse& course,
                            ConsumePiece consume) {
  for (uint64_t piece = 0; piece < course.pieces(); ++piece) {
    HB_RETURN_IF_ERROR(course.CheckMayGoOn());
    const Bytes offset = start + course.StartOf(piece);
    const Bytes size = course.SizeOf(piece);
    HB_RETURN_IF_ERROR(source.Invalidate(offset, size));
    HB_RETURN_IF_ERROR(consume(HostAt(source, offset), size));
    course.Advance(size);
  }
  return absl::OkStatus();
}

}  // namespace

struct Transfers::State {
  State(const Client& client, VulkanImporter& vulkan_importer, const CopyQueue& copy_queue,
        const TransfersOptions& transfers_options)
      : importer(vulkan_importer),
        queue(copy_queue),
        options(transfers_options),
        call_timeout(client.call_timeout()),
        up(client, importer, queue, MemoryKind::kHostVisible, options),
        down(client, importer, queue, MemoryKind::kHostCached, options) {}

  absl::Status RunNow(absl::FunctionRef<void(VkCommandBuffer)> record) const {
    HB_ASSIGN_OR_RETURN(const std::unique_ptr<CopyCommands> commands, CopyCommands::Create(queue));
    HB_RETURN_IF_ERROR(commands->Submit(record));
    return commands->Wait();
  }

  // What the device has written to memory of the context's queue family. Waiting for the
  // device is not enough for that.
  absl::Status ShowToHost() const {
    return importer.SubmitAndWait([](VkCommandBuffer commands) {
      const VkMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                    .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
                                    .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
      vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                           0, 1, &barrier, 0, nullptr, 0, nullptr);
    });
  }

  // `copy` by the host, which needs the buffer acquired, by whichever queue.
  absl::Status Mapped(const DeviceBuffer& buffer, Owner owner,
                      absl::FunctionRef<absl::Status()> copy) const {
    if (owner != Owner::kExternal) return copy();
    HB_RETURN_IF_ERROR(
        RunNow([&](VkCommandBuffer commands) { buffer.RecordAcquire(commands, queue.family); }));
    absl::Status status = copy();
    status.Update(
        RunNow([&](VkCommandBuffer commands) { buffer.RecordRelease(commands, queue.family); }));
    return status;
  }

  const ProcessMark process;
  VulkanImporter& importer;
  const CopyQueue queue;
  const TransfersOptions options;
  const absl::Duration call_timeout;
  StagingRing up;
  StagingRing down;
};

absl::StatusOr<std::unique_ptr<Transfers>> Transfers::Create(const Client& client,
                                                             VulkanImporter& importer,
                                                             const TransfersOptions& options) {
  HB_RETURN_IF_ERROR(CheckOptions(options));
  return std::unique_ptr<Transfers>(new Transfers(
      std::make_unique<State>(client, importer, importer.state_->CopyingQueue(), options)));
}

Transfers::Transfers(std::unique_ptr<State> state) : state_(std::move(state)) {}

Transfers::~Transfers() {
  // Nothing on the device can be waited for, or given back.
  if (state_->process.forked()) static_cast<void>(state_.release());
}

absl::Status Transfers::UploadFrom(const DeviceBuffer& target, Bytes offset, Bytes size,
                                   absl::FunctionRef<absl::Status(void* piece, Bytes size)> produce,
                                   const TransferOptions& options) {
  HB_RETURN_IF_ERROR(state_->process.Check());
  HB_RETURN_IF_ERROR(CheckRange("Upload", offset, size, target.size()));
  if (size == Bytes(0)) return absl::OkStatus();
  TransferCourse course(size, state_->options.piece, options);
  HB_RETURN_IF_ERROR(course.CheckMayGoOn());
  if (target.mapped() != nullptr) {
    return state_->Mapped(target, options.owner,
                          [&] { return UploadMapped(target, offset, course, produce); });
  }
  HB_RETURN_IF_ERROR(state_->up.Prepare(course.pieces(), course.limits()));
  HandOver hand_over(state_->importer, state_->queue, target, offset, size, options.owner);
  return StagedCopy(state_->up, hand_over, target, offset, course).Upload(produce);
}

absl::Status Transfers::DownloadTo(
    const DeviceBuffer& source, Bytes offset, Bytes size,
    absl::FunctionRef<absl::Status(const void* piece, Bytes size)> consume,
    const TransferOptions& options) {
  HB_RETURN_IF_ERROR(state_->process.Check());
  HB_RETURN_IF_ERROR(CheckRange("Download", offset, size, source.size()));
  if (size == Bytes(0)) return absl::OkStatus();
  TransferCourse course(size, state_->options.piece, options);
  HB_RETURN_IF_ERROR(course.CheckMayGoOn());
  if (HostReadsFast(source)) {
    // Acquiring it shows it by itself.
    if (options.owner == Owner::kQueueFamily) HB_RETURN_IF_ERROR(state_->ShowToHost());
    return state_->Mapped(source, options.owner,
                          [&] { return DownloadMapped(source, offset, course, consume); });
  }
  HB_RETURN_IF_ERROR(state_->down.Prepare(course.pieces(), course.limits()));
  HandOver hand_over(state_->importer, state_->queue, source, offset, size, options.owner);
  return StagedCopy(state_->down, hand_over, source, offset, course).Download(consume);
}

absl::Status Transfers::Upload(const DeviceBuffer& target, Bytes offset, const void* data,
                               Bytes size, const TransferOptions& options) {
  const char* next = static_cast<const char*>(data);
  return UploadFrom(
      target, offset, size,
      [&](void* piece, Bytes part) {
        std::memcpy(piece, next, part.count());
        next += part.count();
        return absl::OkStatus();
      },
      options);
}

absl::Status Transfers::Download(const DeviceBuffer& source, Bytes offset, void* data, Bytes size,
                                 const TransferOptions& options) {
  char* next = static_cast<char*>(data);
  return DownloadTo(
      source, offset, size,
      [&](const void* piece, Bytes part) {
        std::memcpy(next, piece, part.count());
        next += part.count();
        return absl::OkStatus();
      },
      options);
}

absl::Status Transfers::ReleaseStaging(const CallOptions& call) {
  HB_RETURN_IF_ERROR(state_->process.Check());
  const CallLimits limits(call, state_->call_timeout);
  absl::Status first = state_->up.End(LeftOf(limits));
  first.Update(state_->down.End(LeftOf(limits)));
  return first;
}

}  // namespace heapbroker
