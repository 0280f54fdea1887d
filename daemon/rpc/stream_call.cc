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
    : WritingCall(live), method_(method) {}

void StreamCall::StartRequest(void* tag) {
  method_.request(&io_->context, &io_->request, &io_->writer, tag);
}

void StreamCall::RequestNext() { Expect(method_, live()); }

void StreamCall::Handle(const Caller& caller, grpc::ByteBuffer request) {
  method_.handle(caller, request, std::static_pointer_cast<StreamCall>(shared_from_this()));
}

void StreamCall::StartOpen(void* tag) { io_->writer.SendInitialMetadata(tag); }

void StreamCall::StartWrite(const grpc::ByteBuffer& message, void* tag) {
  io_->writer.Write(message, tag);
}

void StreamCall::StartEnd(const grpc::Status& status, void* tag) {
  io_->writer.Finish(status, tag);
}

}  // namespace heapbroker
