// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What unary and streaming calls have in common: how a call begins and ends.
#ifndef DAEMON_RPC_CALL_H_
#define DAEMON_RPC_CALL_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "daemon/rpc/caller.h"
#include "daemon/rpc/live_calls.h"
#include "daemon/rpc/queue_tag.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"

namespace heapbroker {

// The life of one call:
//
//     kRequested ──▶ kOpen ──▶ kFinishing     the service or Abort() ends it
//         │            └─────▶ kEnded         the client or its deadline does
//         └──▶ dropped                        the server shuts down first
//
// Two operations begin with every call: its arrival, and gRPC's notice that it
// is over ("done"). Each counts from the start, because with several threads in
// the queue the notice can come before or during the arrival's own handler; a
// call that never arrives gets no notice. Whatever ends the call, the operations
// run out one after the other, and with the last one the call lets go of all
// that belongs to gRPC. The object itself may be kept longer by a service that
// has not answered; its answer is then dropped.
//
// Thread-safe. No lock is held while gRPC or a service is called.
class Call : public std::enable_shared_from_this<Call> {
 public:
  using Callback = absl::AnyInvocable<void() &&>;

  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  virtual ~Call() = default;

  // `callback` runs once if the call ends before the service has ended it: the
  // client cancelled or is gone, the deadline passed, the server shuts down. At
  // once, in this thread, if that has happened already. It is destroyed unused
  // when the service ends the call. One callback for each call.
  void OnCancelled(Callback callback);

  // Ends the call with an error if nobody has ended it, and tells the service.
  void Abort(const absl::Status& status);

 protected:
  // What gRPC lends to the call. Destroyed with the last operation.
  struct Transport {
    grpc::ServerContext context;
    grpc::ByteBuffer request;
    virtual ~Transport() = default;
  };

  explicit Call(LiveCalls& live) : live_(live) {}

  LiveCalls& live() { return live_; }

  // Asks the queue for the call. `transport` is the one that the subclass uses.
  void Begin(std::unique_ptr<Transport> transport);

  // Starts an operation of the service's: kOpen becomes kFinishing. False if
  // the call has ended. After true, StartFinish follows.
  bool BeginFinish();
  // Counts one more operation, if the call is open.
  bool BeginOperation();
  // An operation is through, and its handler has done all that it does.
  void EndOperation();

  void* ArmFinish() { return finish_tag_.Arm(shared_from_this()); }

  // Asks the queue for this call, with `tag`.
  virtual void StartRequest(void* tag) = 0;
  // Asks the queue for the next call of the same method.
  virtual void RequestNext() = 0;
  // The call has arrived; the service is to handle it.
  virtual void Handle(const Caller& caller, grpc::ByteBuffer request) = 0;
  // Sends `status`, which is an error, with the finish tag.
  virtual void StartFinish(const grpc::Status& status) = 0;
  // The finish tag is back. `ok`: the answer went out.
  virtual void Finished(bool ok) = 0;

 private:
  enum class State { kRequested, kOpen, kFinishing, kEnded };

  void OnArrival(bool ok);
  void OnDone(bool ok);
  void OnFinished(bool ok);

  LiveCalls& live_;
  QueueTag arrival_tag_{&Call::OnArrival};
  QueueTag done_tag_{&Call::OnDone};
  QueueTag finish_tag_{&Call::OnFinished};
  // Used by operations only, each of which keeps it alive.
  std::unique_ptr<Transport> transport_;

  Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kRequested;
  int operations_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  Callback on_cancelled_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_CALL_H_
