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

// What a reply grants that makes no sense: nobody else knows of it. Each block by
// itself, because ids may be wrong as well and one wrong id refuses its whole call.
void GiveBack(Connection& connection, const v1::AllocateResponse& response) {
  for (const v1::Block& block : response.blocks()) {
    const absl::Status status = connection.Release({block.block_id()});
    // The others would only take as long.
    if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return;
  }
}

}  // namespace

// The call's context can be cancelled from any thread while the call lasts.
struct Cancellation::State {
  Mutex mutex;
  bool cancelled ABSL_GUARDED_BY(mutex) = false;
  std::shared_ptr<grpc::ClientContext> call ABSL_GUARDED_BY(mutex);
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

absl::StatusOr<Lease> Client::Allocate(const AllocationRequest& request) {
  HB_ASSIGN_OR_RETURN(std::vector<Lease> leases, AllocateAll({request}));
  return std::move(leases.front());
}

absl::StatusOr<std::vector<Lease>> Client::AllocateAll(
    absl::Span<const AllocationRequest> requests) {
  v1::AllocateRequest message;
  for (const AllocationRequest& request : requests) *message.add_blocks() = ToMessage(request);
  HB_ASSIGN_OR_RETURN(const v1::AllocateResponse response, connection_->Allocate(message));
  const absl::StatusOr<std::vector<ImportFacts>> blocks =
      FactsFrom(response, requests.size(), connection_->devices().size());
  if (!blocks.ok()) {
    GiveBack(*connection_, response);
    return blocks.status();
  }
  std::vector<Lease> leases;
  leases.reserve(blocks->size());
  for (const ImportFacts& facts : *blocks) {
    leases.emplace_back(connection_, std::make_shared<MemoryBlock>(connection_, facts));
  }
  return leases;
}

absl::StatusOr<Segment> Client::OpenSegment(const SegmentOptions& options) {
  HB_RETURN_IF_ERROR(connection_->CheckProcess());
  const auto context = std::make_shared<grpc::ClientContext>();
  connection_->Prepare(*context, options.timeout);
  if (options.cancellation != nullptr) {
    MutexLock lock(options.cancellation->state_->mutex);
    if (options.cancellation->state_->cancelled) {
      return absl::CancelledError(
          absl::StrCat("opening segment ", options.name, " was cancelled before it began"));
    }
    options.cancellation->state_->call = context;
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

const std::vector<BrokerDevice>& Client::devices() const { return connection_->devices(); }

uint64_t Client::session_id() const { return connection_->session_id(); }

}  // namespace heapbroker
