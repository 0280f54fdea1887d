// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The session socket of a daemon inside the test.
#ifndef TESTS_UNIT_CLIENT_FAKE_SESSION_SOCKET_H_
#define TESTS_UNIT_CLIENT_FAKE_SESSION_SOCKET_H_

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mutex.h"
#include "common/posix/unique_fd.h"
#include "heapbroker/v1/session.pb.h"

namespace heapbroker {

inline constexpr char kFakeToken[] = "0123456789abcdef";

// What to do with one request.
struct SessionAnswer {
  enum class Then {
    kSend,    // `reply`, with the descriptors where there are any.
    kIgnore,  // Nothing.
    kHangUp,  // Close the connection.
  };
  Then then = Then::kSend;
  v1::SessionReply reply;
  std::vector<UniqueFd> fds;
  std::vector<int> borrowed_fds;  // Sent after those, and left open.
};

SessionAnswer Refuse(uint32_t code, const std::string& message);

// Serves any number of connections on a thread of its own. Thread-safe.
class FakeSessionSocket {
 public:
  using Answerer = std::function<SessionAnswer(const v1::SessionRequest&)>;

  // Listens on `path`.
  FakeSessionSocket(const std::string& path, Answerer answerer);
  ~FakeSessionSocket();

  // For the next requests, on all connections.
  void AnswerWith(Answerer answerer);
  // Requests so far, in order.
  std::vector<v1::SessionRequest> requests() const;
  // Connections that are open.
  size_t connections() const;
  // Closes all connections, keeps listening.
  void HangUpAll();

 private:
  void Run();
  // False when the connection is to be closed.
  bool Serve(const UniqueFd& connection);
  void Wake();

  const std::string path_;
  UniqueFd listener_;
  UniqueFd wake_;
  mutable Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool hang_up_ ABSL_GUARDED_BY(mutex_) = false;
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;
  Answerer answerer_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::SessionRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<UniqueFd> connections_;  // The thread's.
  std::thread thread_;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CLIENT_FAKE_SESSION_SOCKET_H_
