// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Calls that tell a client how something is, and again when it has changed.
#ifndef DAEMON_RPC_STREAM_CALL_H_
#define DAEMON_RPC_STREAM_CALL_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "common/grpc/status.h"
#include "daemon/rpc/byte_buffer.h"
#include "daemon/rpc/call.h"
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
// client that reads slowly misses what was true for a short time only, always
// learns the latest, and costs the daemon one message however slow it is.
class StreamCall final : public Call {
 public:
  using Source = std::function<grpc::ByteBuffer()>;

  // As UnaryCall::Expect.
  static void Expect(const StreamMethod& method, LiveCalls& live);

  StreamCall(const StreamMethod& method, LiveCalls& live);

  // Says where messages come from; called before anything else. `source` runs on
  // any thread, one at a time, for as long as the call is open.
  void SetSource(Source source);
  // What the source says has changed: it will be asked again.
  void Changed();
  // Ends the call after the message that is being sent; the first end counts.
  void Finish(const grpc::Status& status);

 private:
  struct StreamTransport final : Transport {
    StreamTransport() : writer(&context) {}
    grpc::ServerAsyncWriter<grpc::ByteBuffer> writer;
  };

  // Sends until nothing has changed since, or an operation is under way.
  void Pump();
  void OnWritten(bool ok);
  // Nothing is being written any more: the end of the call may go out.
  void EndWrite();

  void StartRequest(void* tag) override;
  void RequestNext() override;
  void Handle(const Caller& caller, grpc::ByteBuffer request) override;
  void StartFinish(const grpc::Status& status) override;
  void Finished(bool ok) override;

  const StreamMethod& method_;
  StreamTransport* io_ = nullptr;  // Owned by the base class; gone when no operation is left.
  QueueTag written_tag_;
  Source source_;

  Mutex write_mutex_;
  bool changed_ ABSL_GUARDED_BY(write_mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(write_mutex_) = false;
  // Set when the call is to end and a write is under way: gRPC takes one
  // operation of a stream at a time.
  std::optional<grpc::Status> finish_ ABSL_GUARDED_BY(write_mutex_);
};

// How a service answers a streaming call. Copies are the same call.
template <typename Response>
class StreamReply {
 public:
  explicit StreamReply(std::shared_ptr<StreamCall> call) : call_(std::move(call)) {}

  // As those of StreamCall.
  void SetSource(std::function<Response()> source) const {
    call_->SetSource([source = std::move(source)] { return SerializeToBuffer(source()); });
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
