// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/client.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/transport/connection.h"
#include "client/transport/convert.h"
#include "client/transport/session_keeper.h"
#include "common/base/status_macros.h"
#include "heapbroker/memory_refusal.h"
#include "heapbroker/memory_watch.h"

namespace heapbroker {
namespace {

absl::StatusOr<std::vector<ImportFacts>> FactsFrom(const v1::AllocateResponse& response,
                                                   size_t requests, size_t device_count) {
  if (static_cast<size_t>(response.blocks_size()) != requests) {
    return absl::InternalError(absl::StrCat("the daemon granted ", response.blocks_size(),
                                            " blocks for ", requests, " requests"));
  }
  return FromMessage(response.blocks(), device_count);
}

// Whether the daemon may have granted what the call asked for: the answer is the
// transport's or, as far as anyone can tell, could be. So is RESOURCE_EXHAUSTED where it is
// not for want of memory: a reply is lost as well when its connection breaks and this
// process has no descriptor for another one.
bool MayBeGranted(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status) ||
         absl::IsCancelled(status) || absl::IsInternal(status) || absl::IsUnknown(status) ||
         (absl::IsResourceExhausted(status) && !RefusalOf(status));
}

absl::Status CheckRequestId(uint64_t request_id) {
  if (request_id <= kMaxRequestId) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("AllocateOptions.request_id is ", request_id,
                                                 "; it must be at most 2^63 - 1, or 0 for none"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Client>> Client::Connect(const ClientOptions& options,
                                                        const CallOptions& call) {
  HB_ASSIGN_OR_RETURN(std::shared_ptr<SessionKeeper> keeper,
                      SessionKeeper::Connect(options, CallLimits(call, options.call_timeout)));
  return std::make_shared<Client>(std::move(keeper));
}

Client::Client(std::shared_ptr<SessionKeeper> keeper) : keeper_(std::move(keeper)) {}

absl::StatusOr<Lease> Client::Allocate(const AllocationRequest& request,
                                       const AllocateOptions& options) {
  HB_ASSIGN_OR_RETURN(std::vector<Lease> leases, AllocateAll({request}, options));
  return std::move(leases.front());
}

absl::StatusOr<std::vector<Lease>> Client::AllocateAll(absl::Span<const AllocationRequest> requests,
                                                       const AllocateOptions& options) {
  HB_RETURN_IF_ERROR(CheckRequestId(options.request_id));
  HB_ASSIGN_OR_RETURN(const std::shared_ptr<Connection> connection, keeper_->Current());
  v1::AllocateRequest message = ToMessage(requests, options);
  if (options.request_id == 0) message.set_request_id(connection->NextRequestId());
  const absl::StatusOr<v1::AllocateResponse> response = connection->Allocate(
      message,
      CallLimits(options.timeout.value_or(connection->call_timeout()), options.cancellation));
  if (!response.ok()) {
    if (options.request_id == 0 && MayBeGranted(response.status())) {
      connection->UndoAllocateLater(message.request_id(), options.device_index);
    }
    return response.status();
  }
  const absl::StatusOr<std::vector<ImportFacts>> blocks =
      FactsFrom(*response, requests.size(), connection->devices().size());
  if (!blocks.ok()) {
    // Nobody else knows of what such a reply grants.
    connection->UndoAllocateLater(message.request_id(), options.device_index);
    return blocks.status();
  }
  // Lost already, and that was told without these.
  if (!connection->holdings().AddLeases(*blocks)) return SessionEndedError();
  std::vector<Lease> leases;
  leases.reserve(blocks->size());
  for (const ImportFacts& facts : *blocks) {
    leases.emplace_back(connection, std::make_shared<MemoryBlock>(connection, facts));
  }
  return leases;
}

absl::Status Client::UndoAllocate(uint64_t request_id, uint32_t device_index,
                                  const CallOptions& call) {
  HB_ASSIGN_OR_RETURN(const std::shared_ptr<Connection> connection, keeper_->Current());
  return connection->UndoAllocate(request_id, device_index,
                                  CallLimits(call, connection->call_timeout()));
}

absl::StatusOr<Segment> Client::OpenSegment(const SegmentOptions& options) {
  HB_ASSIGN_OR_RETURN(const std::shared_ptr<Connection> connection, keeper_->Current());
  HB_ASSIGN_OR_RETURN(const v1::OpenSegmentResponse response,
                      connection->OpenSegment(ToMessage(options),
                                              CallLimits(options.timeout, options.cancellation)));
  Segment::Attachment attachment{.id = response.segment_id(),
                                 .name = options.name,
                                 .writer = response.writer(),
                                 .size = Bytes(response.size()),
                                 .device_index = options.device_index};
  if (response.has_checksum()) attachment.checksum = FromMessage(response.checksum());
  const absl::StatusOr<std::vector<ImportFacts>> blocks =
      FromMessage(response.blocks(), connection->devices().size());
  if (!blocks.ok()) {
    // Others would wait for a writer that does not know that it is one.
    connection->CloseSegmentLater({options.device_index, options.name}, response.segment_id(),
                                  !response.writer());
    return blocks.status();
  }
  for (const ImportFacts& facts : *blocks) {
    attachment.blocks.push_back(std::make_shared<MemoryBlock>(connection, facts));
  }
  // Lost already, and that was told without this one.
  if (!connection->holdings().AddSegment({.segment_id = attachment.id,
                                          .name = attachment.name,
                                          .size = attachment.size,
                                          .device_index = options.device_index,
                                          .writer = attachment.writer})) {
    return SessionEndedError();
  }
  return Segment(connection, std::move(attachment));
}

absl::StatusOr<std::unique_ptr<MemoryWatch>> Client::Watch(WatchHandlers handlers) {
  HB_RETURN_IF_ERROR(keeper_->CheckProcess());
  return MemoryWatch::Start(keeper_, std::move(handlers));
}

absl::Status Client::AwaitSession(const CallOptions& call) {
  return keeper_->Await(CallLimits(call, keeper_->call_timeout())).status();
}

std::vector<BrokerDevice> Client::devices() const {
  const std::shared_ptr<Connection> connection = keeper_->Last();
  return connection == nullptr ? std::vector<BrokerDevice>() : connection->devices();
}

uint64_t Client::session_id() const {
  const std::shared_ptr<Connection> connection = keeper_->Last();
  return connection == nullptr ? 0 : connection->session_id();
}

absl::Duration Client::call_timeout() const { return keeper_->call_timeout(); }

}  // namespace heapbroker
