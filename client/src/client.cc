// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/client.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/transport/connection.h"
#include "client/transport/convert.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
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
// transport's or, as far as anyone can tell, could be.
bool MayBeGranted(const absl::Status& status) {
  return absl::IsDeadlineExceeded(status) || absl::IsUnavailable(status) ||
         absl::IsCancelled(status) || absl::IsInternal(status) || absl::IsUnknown(status);
}

absl::Status CheckRequestId(uint64_t request_id) {
  if (request_id <= kMaxRequestId) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("AllocateOptions.request_id is ", request_id,
                                                 "; it must be at most 2^63 - 1, or 0 for none"));
}

}  // namespace

// The call's context can be cancelled from any thread while the call lasts.
struct Cancellation::State {
  Mutex mutex;
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
  std::shared_ptr<grpc::ClientContext> call ABSL_GUARDED_BY(mutex);

  // `what` is for the message of CANCELLED, if that was already said.
  absl::Status Begin(std::shared_ptr<grpc::ClientContext> context, const std::string& what) {
    MutexLock lock(mutex);
    if (cancelled) {
      return absl::CancelledError(absl::StrCat(what, " was cancelled before it began"));
    }
    call = std::move(context);
    return absl::OkStatus();
  }
};

Cancellation::Cancellation() : state_(std::make_shared<State>()) {}
Cancellation::~Cancellation() = default;

void Cancellation::Cancel() {
  std::shared_ptr<grpc::ClientContext> call;
  {
    MutexLock lock(state_->mutex);
    state_->cancelled = true;
    call = state_->call;
  }
  if (call != nullptr) call->TryCancel();
}

absl::StatusOr<std::shared_ptr<Client>> Client::Connect(const ClientOptions& options) {
  HB_ASSIGN_OR_RETURN(std::shared_ptr<Connection> connection, Connection::Connect(options));
  return std::make_shared<Client>(std::move(connection));
}

Client::Client(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}

absl::StatusOr<Lease> Client::Allocate(const AllocationRequest& request,
                                       const AllocateOptions& options) {
  HB_ASSIGN_OR_RETURN(std::vector<Lease> leases, AllocateAll({request}, options));
  return std::move(leases.front());
}

absl::StatusOr<std::vector<Lease>> Client::AllocateAll(absl::Span<const AllocationRequest> requests,
                                                       const AllocateOptions& options) {
  HB_RETURN_IF_ERROR(CheckRequestId(options.request_id));
  HB_RETURN_IF_ERROR(connection_->CheckProcess());
  const auto context = std::make_shared<grpc::ClientContext>();
  connection_->Prepare(*context, options.timeout.value_or(connection_->call_timeout()));
  if (options.cancellation != nullptr) {
    HB_RETURN_IF_ERROR(options.cancellation->state_->Begin(context, "the request for memory"));
  }
  v1::AllocateRequest message = ToMessage(requests, options);
  if (options.request_id == 0) message.set_request_id(connection_->NextRequestId());
  const absl::StatusOr<v1::AllocateResponse> response = connection_->Allocate(message, *context);
  if (!response.ok()) {
    if (options.request_id == 0 && MayBeGranted(response.status())) {
      connection_->UndoAllocateLater(message.request_id(), options.device_index);
    }
    return response.status();
  }
  const absl::StatusOr<std::vector<ImportFacts>> blocks =
      FactsFrom(*response, requests.size(), connection_->devices().size());
  if (!blocks.ok()) {
    // Nobody else knows of what such a reply grants.
    connection_->UndoAllocateLater(message.request_id(), options.device_index);
    return blocks.status();
  }
  std::vector<Lease> leases;
  leases.reserve(blocks->size());
  for (const ImportFacts& facts : *blocks) {
    leases.emplace_back(connection_, std::make_shared<MemoryBlock>(connection_, facts));
  }
  return leases;
}

absl::Status Client::UndoAllocate(uint64_t request_id, uint32_t device_index) {
  return connection_->UndoAllocate(request_id, device_index);
}

absl::StatusOr<Segment> Client::OpenSegment(const SegmentOptions& options) {
  HB_RETURN_IF_ERROR(connection_->CheckProcess());
  const auto context = std::make_shared<grpc::ClientContext>();
  connection_->Prepare(*context, options.timeout);
  if (options.cancellation != nullptr) {
    HB_RETURN_IF_ERROR(options.cancellation->state_->Begin(
        context, absl::StrCat("opening segment ", options.name)));
  }
  HB_ASSIGN_OR_RETURN(const v1::OpenSegmentResponse response,
                      connection_->OpenSegment(ToMessage(options), *context));
  Segment::Attachment attachment{.id = response.segment_id(),
                                 .name = options.name,
                                 .writer = response.writer(),
                                 .size = Bytes(response.size())};
  if (response.has_checksum()) attachment.checksum = FromMessage(response.checksum());
  const absl::StatusOr<std::vector<ImportFacts>> blocks =
      FromMessage(response.blocks(), connection_->devices().size());
  if (!blocks.ok()) {
    // Others would wait for a writer that does not know that it is one.
    connection_->CloseSegment(response.segment_id()).IgnoreError();
    return blocks.status();
  }
  for (const ImportFacts& facts : *blocks) {
    attachment.blocks.push_back(std::make_shared<MemoryBlock>(connection_, facts));
  }
  return Segment(connection_, std::move(attachment));
}

absl::StatusOr<std::unique_ptr<MemoryWatch>> Client::Watch(WatchHandlers handlers) {
  HB_RETURN_IF_ERROR(connection_->CheckProcess());
  return MemoryWatch::Start(connection_, std::move(handlers));
}

const std::vector<BrokerDevice>& Client::devices() const { return connection_->devices(); }

uint64_t Client::session_id() const { return connection_->session_id(); }

}  // namespace heapbroker
