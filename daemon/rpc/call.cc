// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/call.h"

#include <utility>

#include "absl/time/time.h"
#include "common/grpc/status.h"
#include "grpc/support/time.h"

namespace heapbroker {
namespace {

absl::Time DeadlineOf(const grpc::ServerContext& context) {
  // Not context.deadline(): a deadline after the year 2262, which the wire allows,
  // overflows in there and comes out as any time, also one that has passed.
  const gpr_timespec deadline = gpr_convert_clock_type(context.raw_deadline(), GPR_CLOCK_REALTIME);
  // How gRPC says that there is none.
  if (gpr_time_cmp(deadline, gpr_inf_future(GPR_CLOCK_REALTIME)) == 0) {
    return absl::InfiniteFuture();
  }
  return absl::FromUnixSeconds(deadline.tv_sec) + absl::Nanoseconds(deadline.tv_nsec);
}

}  // namespace

void Call::Begin(std::unique_ptr<Transport> transport) {
  if (!live_.Add(shared_from_this())) return;
  transport_ = std::move(transport);
  {
    MutexLock lock(mutex_);
    operations_ = 2;
  }
  transport_->context.AsyncNotifyWhenDone(done_tag_.Arm(shared_from_this()));
  StartRequest(arrival_tag_.Arm(shared_from_this()));
}

void Call::OnArrival(bool ok) {
  if (!ok) {
    done_tag_.Disarm();
    EndOperation();
    EndOperation();
    return;
  }
  RequestNext();
  bool open = false;
  {
    // The notice that the call is over may have been faster.
    MutexLock lock(mutex_);
    if (state_ == State::kRequested) state_ = State::kOpen;
    open = state_ == State::kOpen;
  }
  // After the state: a server that shuts down either finds this call open among
  // those that have arrived, or is found closed here.
  const grpc::ServerContext& context = transport_->context;
  const Caller caller{ReadSessionToken(context.client_metadata()), DeadlineOf(context)};
  const absl::Status accepted = live_.Arrive(this, caller);
  if (!accepted.ok()) {
    Abort(accepted);
  } else if (open) {
    Handle(caller, std::move(transport_->request));
  }
  EndOperation();
}

void Call::OnDone(bool /*ok*/) {
  Callback callback;
  {
    MutexLock lock(mutex_);
    if (state_ == State::kRequested || state_ == State::kOpen) {
      state_ = State::kEnded;
      cancelled_ = true;
      callback = std::exchange(on_cancelled_, nullptr);
    }
  }
  if (callback) std::move(callback)();
  EndOperation();
}

void Call::OnFinished(bool ok) {
  Finished(ok);
  EndOperation();
}

void Call::OnCancelled(Callback callback) {
  {
    MutexLock lock(mutex_);
    if (state_ == State::kOpen) {
      on_cancelled_ = std::move(callback);
      return;
    }
    if (!cancelled_) return;
  }
  std::move(callback)();
}

void Call::Abort(const absl::Status& status) {
  Callback callback;
  {
    MutexLock lock(mutex_);
    if (state_ != State::kOpen) return;
    state_ = State::kFinishing;
    cancelled_ = true;
    ++operations_;
    callback = std::exchange(on_cancelled_, nullptr);
  }
  StartFinish(ToGrpcStatus(status));
  if (callback) std::move(callback)();
}

bool Call::BeginFinish() {
  Callback unused;  // Destroyed outside the lock: it may hold anything.
  MutexLock lock(mutex_);
  if (state_ != State::kOpen) return false;
  state_ = State::kFinishing;
  ++operations_;
  unused = std::exchange(on_cancelled_, nullptr);
  return true;
}

bool Call::BeginOperation() {
  MutexLock lock(mutex_);
  if (state_ != State::kOpen) return false;
  ++operations_;
  return true;
}

void Call::EndOperation() {
  {
    MutexLock lock(mutex_);
    if (--operations_ > 0) return;
  }
  // Before the server hears that this call is over: it may be gone after that.
  transport_.reset();
  live_.Remove(this);
}

}  // namespace heapbroker
