// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Gives back what nobody waits for any more: what calls granted whose replies never
// came, and leases whose release failed.
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
#include "heapbroker/v1/broker.pb.h"

namespace heapbroker {

// One after the other, on a thread of its own that there is once it is needed:
// whoever waited for the reply has waited long enough. The calls have no deadline,
// so that a daemon that hangs is told as soon as it goes on. A call that did not reach
// the daemon is repeated until it does: the process may have had no descriptor left for
// a moment. Once the session is lost there is nothing more to do, since the daemon has
// taken back all that it held. Thread-safe.
class RequestUndoer {
 public:
  // Between calls that did not reach the daemon.
  static constexpr std::chrono::milliseconds kPause{100};

  // `release` makes the call with the given context, and returns when it has ended:
  // whether there is nothing more to do.
  using Release = std::function<bool(grpc::ClientContext&, const v1::ReleaseRequest&)>;
  explicit RequestUndoer(Release release) : release_(std::move(release)) {}
  // Cancels the call that lasts and drops what follows: the end of the session,
  // which comes now, gives back everything.
  ~RequestUndoer();
  RequestUndoer(const RequestUndoer&) = delete;
  RequestUndoer& operator=(const RequestUndoer&) = delete;

  // Returns at once.
  void Add(v1::ReleaseRequest request);

 private:
  void Run();
  // The next request; unset when there is none any more, because this ends.
  std::optional<v1::ReleaseRequest> Next();
  // Makes the call; whether it need not be repeated.
  bool Call(const v1::ReleaseRequest& request);
  void Pause();

  const Release release_;
  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<v1::ReleaseRequest> waiting_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<grpc::ClientContext> call_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_REQUEST_UNDOER_H_
