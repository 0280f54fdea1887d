// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Gives back what nobody waits for any more: what calls granted whose replies never
// came, leases whose release failed, and segments whose close did.
#ifndef CLIENT_TRANSPORT_REQUEST_UNDOER_H_
#define CLIENT_TRANSPORT_REQUEST_UNDOER_H_

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "common/base/mutex.h"
#include "grpcpp/client_context.h"

namespace heapbroker {

// One after the other, on a thread of its own that there is once it is needed:
// whoever waited for the reply has waited long enough. The calls have no deadline,
// so that a daemon that hangs is told as soon as it goes on. A call that failed in a way
// that may pass is repeated after the others, until it does not: the process may have had
// no descriptor left for a moment. Once the session is lost there is nothing more to do,
// since the daemon has taken back all that it held. Thread-safe.
class RequestUndoer {
 public:
  // After a call that has to be repeated; twice as long after each further one, up to the
  // longest.
  static constexpr std::chrono::milliseconds kPause{100};
  static constexpr std::chrono::milliseconds kLongestPause{1000};

  // Makes a call with the given context, and returns when it has ended: whether there is
  // nothing more to do.
  using Call = std::function<bool(grpc::ClientContext&)>;

  RequestUndoer() = default;
  // Cancels the call that lasts and drops what follows: the end of the session,
  // which comes now, gives back everything.
  ~RequestUndoer();
  RequestUndoer(const RequestUndoer&) = delete;
  RequestUndoer& operator=(const RequestUndoer&) = delete;

  // Returns at once. Where there can be no thread, what was added waits until there can
  // be one when more is.
  void Add(Call call);

 private:
  void Run();
  // The next call; unset when there is none any more, because this ends.
  std::optional<Call> Next();
  // Makes the call; whether it need not be repeated.
  bool Make(const Call& call);
  void Pause(std::chrono::milliseconds pause);

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Call> waiting_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<grpc::ClientContext> lasting_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_REQUEST_UNDOER_H_
