// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Calls in which both sides send messages, independently of each other.
#ifndef DAEMON_RPC_BIDI_CALL_H_
#define DAEMON_RPC_BIDI_CALL_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/grpc/status.h"
#include "daemon/rpc/byte_buffer.h"
#include "daemon/rpc/writing_call.h"
#include "grpcpp/support/async_stream.h"

namespace heapbroker {

class BidiCall;

// As UnaryMethod, for a method that streams both ways.
struct BidiMethod {
  using Stream = grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

  std::function<void(grpc::ServerContext* context, Stream* stream, void* tag)> request;
  std::function<void(const Caller& caller, std::shared_ptr<BidiCall> call)> handle;
};

// One call of a BidiMethod. Services see it as a BidiReply.
//
// The next message is read when the one before has been handled, so a client that
// sends faster than that is held up by the connection's flow control, and costs
// the daemon one message. What it sends after the call's end is not read.
class BidiCall final : public WritingCall {
 public:
  // `message`: empty when the client has said all. On any thread, one at a time.
  using Reader = std::function<void(std::optional<grpc::ByteBuffer> message,
                                    const std::shared_ptr<BidiCall>& call)>;

  // As UnaryCall::Expect.
  static void Expect(const BidiMethod& method, LiveCalls& live);

  BidiCall(const BidiMethod& method, LiveCalls& live);

  // Begins to read; once. After the empty message there is none. The reader must
  // not own the call, which owns it.
  void Read(Reader reader);

 private:
  struct BidiTransport final : Transport {
    BidiTransport() : stream(&context) {}
    BidiMethod::Stream stream;
  };

  void ReadNext();
  void OnRead(bool ok);

  void StartRequest(void* tag) override;
  void RequestNext() override;
  void Handle(const Caller& caller, grpc::ByteBuffer request) override;
  void StartOpen(void* tag) override;
  void StartWrite(const grpc::ByteBuffer& message, void* tag) override;
  void StartEnd(const grpc::Status& status, void* tag) override;

  const BidiMethod& method_;
  BidiTransport* io_ = nullptr;  // Owned by the base class; gone when no operation is left.
  QueueTag read_tag_;
  Reader reader_;
};

// How a service has a conversation. Copies are the same call.
template <typename Request, typename Response>
class BidiReply {
 public:
  // `message`: empty when the client has said all.
  //   INVALID_ARGUMENT  what it said is no Request
  using Reader = std::function<void(const absl::StatusOr<std::optional<Request>>& message,
                                    const BidiReply& reply)>;

  explicit BidiReply(std::shared_ptr<BidiCall> call) : call_(std::move(call)) {}

  // As those of WritingCall, except that the source is asked until it is empty.
  void SetSource(std::function<std::optional<Response>()> source) const {
    call_->SetSource([source = std::move(source)]() -> std::optional<WritingCall::Next> {
      const std::optional<Response> response = source();
      if (!response.has_value()) return std::nullopt;
      return WritingCall::Next{SerializeToBuffer(*response), /*more=*/true};
    });
  }
  void Changed() const { call_->Changed(); }
  void Finish(const absl::Status& status) const { call_->Finish(ToGrpcStatus(status)); }

  // As BidiCall::Read.
  void Read(Reader reader) const {
    call_->Read([reader = std::move(reader)](const std::optional<grpc::ByteBuffer>& bytes,
                                             const std::shared_ptr<BidiCall>& call) {
      reader(Parse(bytes), BidiReply(call));
    });
  }

  // As Call::OnCancelled.
  void OnCancelled(Call::Callback callback) const { call_->OnCancelled(std::move(callback)); }

 private:
  static absl::StatusOr<std::optional<Request>> Parse(
      const std::optional<grpc::ByteBuffer>& bytes) {
    std::optional<Request> message;
    if (!bytes.has_value()) return message;
    const absl::Status status = ParseBuffer(*bytes, message.emplace());
    if (!status.ok()) return status;
    return message;
  }

  std::shared_ptr<BidiCall> call_;
};

// `handler`: void(const Caller&, BidiReply<Request, Response>).
template <typename Request, typename Response, typename Handler>
BidiMethod BidiMethodOf(decltype(BidiMethod::request) request, Handler handler) {
  BidiMethod method;
  method.request = std::move(request);
  method.handle = [handler = std::move(handler)](const Caller& caller,
                                                 std::shared_ptr<BidiCall> call) {
    handler(caller, BidiReply<Request, Response>(std::move(call)));
  };
  return method;
}

}  // namespace heapbroker
#endif  // DAEMON_RPC_BIDI_CALL_H_
