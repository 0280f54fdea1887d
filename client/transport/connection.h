// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One session with the daemon: both of its sockets.
#ifndef CLIENT_TRANSPORT_CONNECTION_H_
#define CLIENT_TRANSPORT_CONNECTION_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/transport/call_limits.h"
#include "client/transport/holdings.h"
#include "client/transport/process_mark.h"
#include "client/transport/request_undoer.h"
#include "client/transport/segment_claims.h"
#include "client/transport/session_channel.h"
#include "client/transport/turn.h"
#include "common/posix/unique_fd.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "heapbroker/client.h"
#include "heapbroker/types.h"
#include "heapbroker/v1/broker.grpc.pb.h"

namespace heapbroker {

// Ends the session when it ends; whatever needs the session shares it. In a
// forked child it does nothing at all, also when it ends: gRPC's threads are not
// there, and the session is the parent's.
//
// Once the session is lost, nothing is sent any more: a daemon that came in the
// place of the old one never hears of what is not its own.
//
// Thread-safe.
class Connection {
 public:
  // See Client::Connect; `options.call_timeout` is for the calls that follow.
  static absl::StatusOr<std::shared_ptr<Connection>> Connect(const ClientOptions& options,
                                                             const CallLimits& limits);
  static absl::StatusOr<std::shared_ptr<Connection>> Connect(const ClientOptions& options) {
    return Connect(options, CallLimits(options.call_timeout));
  }
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::vector<BrokerDevice>& devices() const { return devices_; }
  uint64_t session_id() const { return session_id_; }
  absl::Duration call_timeout() const { return call_timeout_; }
  // Where the daemon was found; absolute.
  const std::string& runtime_dir() const { return runtime_dir_; }
  // Unique in this process.
  uint64_t number() const { return number_; }

  // FAILED_PRECONDITION in a forked child. Every call below checks by itself.
  absl::Status CheckProcess() const;

  // Calls `on_lost` when the session is lost: once, from whichever thread notices it,
  // with no lock held. To be set before anyone else has the connection.
  void SetLossHandler(std::function<void()> on_lost) { on_lost_ = std::move(on_lost); }
  // The session was found to have ended. Never back to false.
  bool lost() const { return lost_; }
  // Looks whether it has ended.
  bool Alive();
  // Cancelled once the session is lost, and with it all calls that still wait.
  const std::shared_ptr<Cancellation>& ended() const { return ended_; }
  // Waits until it has ended; as WaitForHangUp.
  absl::Status AwaitEnd(absl::Duration timeout, const UniqueFd* interrupt);

  // What the program has of this session. Its leases and segments keep it up.
  Holdings& holdings() { return holdings_; }

  // For stubs of other services. Calls that belong to the session go through
  // Prepare, and their errors through Translate.
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // Adds the token, and `timeout` from now as deadline unless it is infinite.
  void Prepare(grpc::ClientContext& context, absl::Duration timeout) const;
  // As FromGrpcStatus, but an ended session is UNAVAILABLE, whichever way it
  // shows: a daemon that was restarted does not know the token. Keeps what RefusalOf
  // reads.
  static absl::Status Translate(const grpc::Status& status);
  // Translate, which notices that the session is lost, and that this process has no
  // descriptor left (RESOURCE_EXHAUSTED): to gRPC both look like a daemon that does not
  // answer.
  absl::Status Conclude(const grpc::Status& status);

  // For a call whose caller named none; above kMaxRequestId, and never the same.
  uint64_t NextRequestId();
  absl::StatusOr<v1::AllocateResponse> Allocate(const v1::AllocateRequest& request,
                                                const CallLimits& limits);
  // Blocks of one device. At most SessionLimits.max_blocks_per_call go into one call.
  absl::Status Release(absl::Span<const uint64_t> block_ids, const CallLimits& limits);
  // The same, some time after this has returned, and whatever becomes of it. Each block
  // by itself: one that an earlier call has released is unknown to the daemon, which
  // refuses a whole call for it.
  void ReleaseLater(absl::Span<const uint64_t> block_ids);
  // See Client::UndoAllocate.
  absl::Status UndoAllocate(uint64_t request_id, uint32_t device_index, const CallLimits& limits);
  // The same, some time after this has returned, and whatever becomes of it.
  void UndoAllocateLater(uint64_t request_id, uint32_t device_index);
  // What it attaches is claimed until EndClaim or CloseSegmentLater.
  absl::StatusOr<v1::OpenSegmentResponse> OpenSegment(const v1::OpenSegmentRequest& request,
                                                      const CallLimits& limits);
  absl::Status SealSegment(uint64_t segment_id, Checksum checksum, const CallLimits& limits);
  absl::Status CloseSegment(uint64_t segment_id, const CallLimits& limits);
  // The segment is closed.
  void EndClaim(const SegmentClaims::Key& key);
  // CloseSegment, some time after this has returned, and whatever becomes of it; ends the
  // claim. Another close of this attachment may have arrived at the daemon without an
  // answer. `sealed`: the segment is or may be, so that the session can be attached to it
  // more than once; else the id ends with the attachment.
  void CloseSegmentLater(const SegmentClaims::Key& key, uint64_t segment_id, bool sealed);

  // The caller prepares `context`, which must outlive the stream.
  std::unique_ptr<grpc::ClientReaderWriter<v1::WatchRequest, v1::WatchEvent>> Watch(
      grpc::ClientContext& context);

  // As SessionChannel::Fetch.
  absl::StatusOr<std::vector<UniqueFd>> Fetch(absl::Span<const uint64_t> block_ids,
                                              const CallLimits& limits);

 private:
  Connection() = default;

  // Makes the call, whose status it returns, as RequestUndoer does. It may use all of
  // this.
  void DoLater(std::function<grpc::Status(grpc::ClientContext&)> call);
  void RepeatClose(const SegmentClaims::Key& key, uint64_t segment_id, bool sealed);
  // Whether a call can be made: an error where it would be of no use.
  absl::Status CheckUsable();
  void MarkLost();
  template <typename Request, typename Response>
  absl::Status Call(grpc::Status (v1::MemoryBroker::Stub::*method)(grpc::ClientContext*,
                                                                   const Request&, Response*),
                    const Request& request, Response& response, const CallLimits& limits);

  std::atomic<uint64_t> last_request_id_ = kMaxRequestId;
  std::atomic<bool> lost_ = false;
  const std::shared_ptr<Cancellation> ended_ = std::make_shared<Cancellation>();
  Holdings holdings_;
  SegmentClaims claims_;
  // Of adding a claim, and of repeating a close, which nobody may claim meanwhile.
  Turn closing_;

  // All others are constant once connected.
  pid_t pid_ = 0;
  uint64_t number_ = 0;
  std::function<void()> on_lost_;
  std::string runtime_dir_;
  std::vector<BrokerDevice> devices_;
  std::string token_;
  uint64_t session_id_ = 0;
  size_t max_blocks_per_call_ = 0;
  absl::Duration call_timeout_;

  std::unique_ptr<SessionChannel> session_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::MemoryBroker::Stub> stub_;
  std::unique_ptr<RequestUndoer> undoer_;  // Uses all of the above.
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_CONNECTION_H_
