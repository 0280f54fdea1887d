// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/unary_call.h"

namespace heapbroker {

void UnaryCall::Expect(const UnaryMethod& method, LiveCalls& live) {
  const auto call = std::make_shared<UnaryCall>(method, live);
  auto transport = std::make_unique<UnaryTransport>();
  call->io_ = transport.get();
  call->Begin(std::move(transport));
}

UnaryCall::UnaryCall(const UnaryMethod& method, LiveCalls& live) : Call(live), method_(method) {}

void UnaryCall::Finish(const grpc::Status& status, const grpc::ByteBuffer& response,
                       Callback undo) {
  if (!BeginFinish()) {
    if (undo) std::move(undo)();
    return;
  }
  if (!status.ok()) {
    StartFinish(status);
    return;
  }
  undo_ = std::move(undo);
  io_->writer.Finish(response, status, ArmFinish());
}

void UnaryCall::StartRequest(void* tag) {
  method_.request(&io_->context, &io_->request, &io_->writer, tag);
}

void UnaryCall::RequestNext() { Expect(method_, live()); }

void UnaryCall::Handle(const Caller& caller, grpc::ByteBuffer request) {
  method_.handle(caller, request, std::static_pointer_cast<UnaryCall>(shared_from_this()));
}

void UnaryCall::StartFinish(const grpc::Status& status) {
  io_->writer.FinishWithError(status, ArmFinish());
}

void UnaryCall::Finished(bool ok) {
  Callback undo = std::exchange(undo_, nullptr);
  if (!ok && undo) std::move(undo)();
}

}  // namespace heapbroker
