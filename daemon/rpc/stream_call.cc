// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/stream_call.h"

namespace heapbroker {

void StreamCall::Expect(const StreamMethod& method, LiveCalls& live) {
  const auto call = std::make_shared<StreamCall>(method, live);
  auto transport = std::make_unique<StreamTransport>();
  call->io_ = transport.get();
  call->Begin(std::move(transport));
}

StreamCall::StreamCall(const StreamMethod& method, LiveCalls& live)
    : Call(live),
      method_(method),
      written_tag_(static_cast<QueueTag::Handler>(&StreamCall::OnWritten)) {}

void StreamCall::SetSource(Source source) { source_ = std::move(source); }

void StreamCall::Changed() {
  {
    MutexLock lock(write_mutex_);
    changed_ = true;
  }
  Pump();
}

void StreamCall::Pump() {
  {
    MutexLock lock(write_mutex_);
    if (writing_ || !changed_) return;
    writing_ = true;
    changed_ = false;
  }
  // A change from here on makes the source be asked again after this write.
  if (BeginOperation()) {
    io_->writer.Write(source_(), written_tag_.Arm(shared_from_this()));
  } else {
    EndWrite();
  }
}

void StreamCall::OnWritten(bool ok) {
  EndWrite();
  // After a failure the call is over, and the notice of that is on its way.
  if (ok) Pump();
  EndOperation();
}

void StreamCall::EndWrite() {
  std::optional<grpc::Status> finish;
  {
    MutexLock lock(write_mutex_);
    writing_ = false;
    finish = std::exchange(finish_, std::nullopt);
  }
  if (finish.has_value()) StartFinish(*finish);
}

void StreamCall::Finish(const grpc::Status& status) {
  if (BeginFinish()) StartFinish(status);
}

void StreamCall::StartRequest(void* tag) {
  method_.request(&io_->context, &io_->request, &io_->writer, tag);
}

void StreamCall::RequestNext() { Expect(method_, live()); }

void StreamCall::Handle(const Caller& caller, grpc::ByteBuffer request) {
  method_.handle(caller, request, std::static_pointer_cast<StreamCall>(shared_from_this()));
}

void StreamCall::StartFinish(const grpc::Status& status) {
  {
    MutexLock lock(write_mutex_);
    if (writing_) {
      finish_ = status;
      return;
    }
    writing_ = true;
  }
  io_->writer.Finish(status, ArmFinish());
}

void StreamCall::Finished(bool /*ok*/) {}

}  // namespace heapbroker
