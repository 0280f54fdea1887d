// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Calls with one request and one answer.
#ifndef DAEMON_RPC_UNARY_CALL_H_
#define DAEMON_RPC_UNARY_CALL_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "common/grpc/status.h"
#include "daemon/rpc/byte_buffer.h"
#include "daemon/rpc/call.h"
#include "grpcpp/support/async_unary_call.h"

namespace heapbroker {

class UnaryCall;

// One method: how the queue is asked for a call of it, and who handles it.
// UnaryMethodOf() makes one from a typed handler.
struct UnaryMethod {
  // RequestX of the generated service, with raw messages.
  std::function<void(grpc::ServerContext* context, grpc::ByteBuffer* request,
                     grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>* writer, void* tag)>
      request;
  std::function<void(const Caller& caller, const grpc::ByteBuffer& request,
                     std::shared_ptr<UnaryCall> call)>
      handle;
};

// One call of a UnaryMethod. Services see it as a UnaryReply.
class UnaryCall final : public Call {
 public:
  // Makes the queue bring the next call of `method`, and after it the one after
  // that, and so on until `live` is closed. Both must outlive the calls.
  static void Expect(const UnaryMethod& method, LiveCalls& live);

  UnaryCall(const UnaryMethod& method, LiveCalls& live);

  // Ends the call; the first end counts. `undo` runs once, on any thread, if the
  // answer did not go out: the call had ended before, or ended meanwhile. It does
  // not run for an answer that went out to a client that had just stopped waiting:
  // that one cannot be told from an answer that arrived, and what a client knows
  // of must not be taken away behind its back. The session's end gives it back.
  void Finish(const grpc::Status& status, const grpc::ByteBuffer& response, Callback undo);

 private:
  struct UnaryTransport final : Transport {
    UnaryTransport() : writer(&context) {}
    grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer;
  };

  void StartRequest(void* tag) override;
  void RequestNext() override;
  void Handle(const Caller& caller, grpc::ByteBuffer request) override;
  void StartFinish(const grpc::Status& status) override;
  void Finished(bool ok) override;

  const UnaryMethod& method_;
  UnaryTransport* io_ = nullptr;  // Owned by the base class; gone when no operation is left.
  Callback undo_;  // Written before the finish operation starts, read when it is through.
};

// How a service answers a call: at once or later, from any thread. Copies are
// the same call. Must be finished once, whatever happens.
template <typename Response>
class UnaryReply {
 public:
  explicit UnaryReply(std::shared_ptr<UnaryCall> call) : call_(std::move(call)) {}

  void Finish(const absl::StatusOr<Response>& answer) const { Finish(answer, nullptr); }
  // `undo` as in UnaryCall::Finish: takes back what the answer gave.
  void Finish(const absl::StatusOr<Response>& answer, Call::Callback undo) const {
    call_->Finish(ToGrpcStatus(answer.status()),
                  answer.ok() ? SerializeToBuffer(*answer) : grpc::ByteBuffer(), std::move(undo));
  }

  // As Call::OnCancelled.
  void OnCancelled(Call::Callback callback) const { call_->OnCancelled(std::move(callback)); }

 private:
  std::shared_ptr<UnaryCall> call_;
};

// `admit`: absl::Status(const Caller&). Comes before everything else: whoever may not
// make the call does not get 64 KiB parsed, which takes milliseconds.
// `handler`: void(const Caller&, const Request&, UnaryReply<Response>). It sees
// parsed requests only; what is not a Request is answered here.
template <typename Request, typename Response, typename Admit, typename Handler>
UnaryMethod UnaryMethodOf(decltype(UnaryMethod::request) request, Admit admit, Handler handler) {
  UnaryMethod method;
  method.request = std::move(request);
  method.handle = [admit = std::move(admit), handler = std::move(handler)](
                      const Caller& caller, const grpc::ByteBuffer& bytes,
                      std::shared_ptr<UnaryCall> call) {
    UnaryReply<Response> reply(std::move(call));
    if (absl::Status status = admit(caller); !status.ok()) {
      reply.Finish(std::move(status));
      return;
    }
    Request parsed;
    if (absl::Status status = ParseBuffer(bytes, parsed); !status.ok()) {
      reply.Finish(std::move(status));
      return;
    }
    handler(caller, parsed, std::move(reply));
  };
  return method;
}

}  // namespace heapbroker
#endif  // DAEMON_RPC_UNARY_CALL_H_
