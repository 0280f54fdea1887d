// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/bidi_call.h"

namespace heapbroker {

void BidiCall::Expect(const BidiMethod& method, LiveCalls& live) {
  const auto call = std::make_shared<BidiCall>(method, live);
  auto transport = std::make_unique<BidiTransport>();
  call->io_ = transport.get();
  call->Begin(std::move(transport));
}

BidiCall::BidiCall(const BidiMethod& method, LiveCalls& live)
    : WritingCall(live),
      method_(method),
      read_tag_(static_cast<QueueTag::Handler>(&BidiCall::OnRead)) {}

void BidiCall::Read(Reader reader) {
  reader_ = std::move(reader);
  ReadNext();
}

void BidiCall::ReadNext() {
  if (!BeginOperation()) return;
  io_->stream.Read(&io_->request, read_tag_.Arm(shared_from_this()));
}

void BidiCall::OnRead(bool ok) {
  const auto self = std::static_pointer_cast<BidiCall>(shared_from_this());
  if (ok) {
    reader_(std::move(io_->request), self);
    io_->request.Clear();
    ReadNext();
  } else {
    // The client has said all, or the call is over; then nobody hears the answer.
    reader_(std::nullopt, self);
  }
  EndOperation();
}

void BidiCall::StartRequest(void* tag) { method_.request(&io_->context, &io_->stream, tag); }

void BidiCall::RequestNext() { Expect(method_, live()); }

void BidiCall::Handle(const Caller& caller, grpc::ByteBuffer /*request*/) {
  Open();
  method_.handle(caller, std::static_pointer_cast<BidiCall>(shared_from_this()));
}

void BidiCall::StartOpen(void* tag) { io_->stream.SendInitialMetadata(tag); }

void BidiCall::StartWrite(const grpc::ByteBuffer& message, void* tag) {
  io_->stream.Write(message, tag);
}

void BidiCall::StartEnd(const grpc::Status& status, void* tag) { io_->stream.Finish(status, tag); }

}  // namespace heapbroker
