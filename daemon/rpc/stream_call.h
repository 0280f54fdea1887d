// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Calls that tell a client how something is, and again when it has changed.
#ifndef DAEMON_RPC_STREAM_CALL_H_
#define DAEMON_RPC_STREAM_CALL_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "common/grpc/status.h"
#include "daemon/rpc/byte_buffer.h"
#include "daemon/rpc/writing_call.h"
#include "grpcpp/support/async_stream.h"

namespace heapbroker {

class StreamCall;

// As UnaryMethod, for a method that streams its answers.
struct StreamMethod {
  std::function<void(grpc::ServerContext* context, grpc::ByteBuffer* request,
                     grpc::ServerAsyncWriter<grpc::ByteBuffer>* writer, void* tag)>
      request;
  std::function<void(const Caller& caller, const grpc::ByteBuffer& request,
                     std::shared_ptr<StreamCall> call)>
      handle;
};

// One call of a StreamMethod. Services see it as a StreamReply.
//
// It sends states, not events: the message is made when it can be sent, so a
// client that reads slowly misses what was true for a short time only, and always
// learns the latest.
class StreamCall final : public WritingCall {
 public:
  // As UnaryCall::Expect.
  static void Expect(const StreamMethod& method, LiveCalls& live);

  StreamCall(const StreamMethod& method, LiveCalls& live);

 private:
  struct StreamTransport final : Transport {
    StreamTransport() : writer(&context) {}
    grpc::ServerAsyncWriter<grpc::ByteBuffer> writer;
  };

  void StartRequest(void* tag) override;
  void RequestNext() override;
  void Handle(const Caller& caller, grpc::ByteBuffer request) override;
  void StartOpen(void* tag) override;
  void StartWrite(const grpc::ByteBuffer& message, void* tag) override;
  void StartEnd(const grpc::Status& status, void* tag) override;

  const StreamMethod& method_;
  StreamTransport* io_ = nullptr;  // Owned by the base class; gone when no operation is left.
};

// How a service answers a streaming call. Copies are the same call.
template <typename Response>
class StreamReply {
 public:
  explicit StreamReply(std::shared_ptr<StreamCall> call) : call_(std::move(call)) {}

  // As those of WritingCall.
  void SetSource(std::function<Response()> source) const {
    call_->SetSource([source = std::move(source)] {
      return std::optional<WritingCall::Next>(WritingCall::Next{SerializeToBuffer(source())});
    });
  }
  // As SetSource, for messages that several calls are sent: a Response, as
  // SerializeToBuffer makes it.
  void SetSharedSource(std::function<grpc::ByteBuffer()> source) const {
    call_->SetSource([source = std::move(source)] {
      return std::optional<WritingCall::Next>(WritingCall::Next{source()});
    });
  }
  void Changed() const { call_->Changed(); }
  void Finish(const absl::Status& status) const { call_->Finish(ToGrpcStatus(status)); }

  // As Call::OnCancelled.
  void OnCancelled(Call::Callback callback) const { call_->OnCancelled(std::move(callback)); }

 private:
  std::shared_ptr<StreamCall> call_;
};

// As UnaryMethodOf; `handler`: void(const Caller&, const Request&, StreamReply<Response>).
template <typename Request, typename Response, typename Handler>
StreamMethod StreamMethodOf(decltype(StreamMethod::request) request, Handler handler) {
  StreamMethod method;
  method.request = std::move(request);
  method.handle = [handler = std::move(handler)](const Caller& caller,
                                                 const grpc::ByteBuffer& bytes,
                                                 std::shared_ptr<StreamCall> call) {
    StreamReply<Response> reply(std::move(call));
    Request parsed;
    if (absl::Status status = ParseBuffer(bytes, parsed); !status.ok()) {
      reply.Finish(status);
      return;
    }
    handler(caller, parsed, std::move(reply));
  };
  return method;
}

}  // namespace heapbroker
#endif  // DAEMON_RPC_STREAM_CALL_H_
