// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Calls that send several messages: how they are sent, one after the other.
#ifndef DAEMON_RPC_WRITING_CALL_H_
#define DAEMON_RPC_WRITING_CALL_H_

#include <functional>
#include <optional>

#include "daemon/rpc/call.h"
#include "grpcpp/support/byte_buffer.h"

namespace heapbroker {

// A message is made when it can be sent, so however slow a client is, its call
// costs the daemon one message and what the source keeps.
class WritingCall : public Call {
 public:
  struct Next {
    grpc::ByteBuffer message;
    // Ask again when it has been sent, without a change.
    bool more = false;
  };
  // Empty: there is nothing to send.
  using Source = std::function<std::optional<Next>()>;

  // Says where messages come from; called before anything else. `source` runs on
  // any thread, one at a time, for as long as the call is open.
  void SetSource(Source source);
  // What the source says has changed: it will be asked again.
  void Changed();
  // Ends the call after the message that is being sent; the first end counts.
  void Finish(const grpc::Status& status);

 protected:
  explicit WritingCall(LiveCalls& live);

  // Tells the client that the call was taken, before there is a message. At most
  // once, and before the first Changed().
  void Open();

  // Ask gRPC for it, with `tag`. One of them is under way at a time.
  virtual void StartOpen(void* tag) = 0;
  virtual void StartWrite(const grpc::ByteBuffer& message, void* tag) = 0;
  virtual void StartEnd(const grpc::Status& status, void* tag) = 0;

 private:
  // Sends until nothing has changed since, or an operation is under way.
  void Pump();
  // True when the source is to be asked, and nothing else written meanwhile.
  bool BeginWrite();
  void OnWritten(bool ok);
  // Nothing is being written any more: the end of the call may go out.
  void EndWrite();

  void StartFinish(const grpc::Status& status) final;
  void Finished(bool ok) final;

  QueueTag written_tag_;
  Source source_;

  Mutex write_mutex_;
  bool changed_ ABSL_GUARDED_BY(write_mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(write_mutex_) = false;
  // Set when the call is to end and a write is under way: gRPC takes one
  // operation of a stream at a time.
  std::optional<grpc::Status> finish_ ABSL_GUARDED_BY(write_mutex_);
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_WRITING_CALL_H_
