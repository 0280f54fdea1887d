// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A client of the session socket that can also misbehave, and a server for it.
#ifndef TESTS_UNIT_SESSION_SESSION_CLIENT_H_
#define TESTS_UNIT_SESSION_SESSION_CLIENT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/posix/unique_fd.h"
#include "daemon/session/session_server.h"
#include "gtest/gtest.h"
#include "heapbroker/v1/session.pb.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/session/test_core.h"

namespace heapbroker {

std::string HelloPacket(const std::string& name = "test", bool observer = false);
std::string FetchPacket(absl::Span<const BlockId> blocks);
inline std::string FetchPacket(BlockId block) { return FetchPacket({&block, 1}); }

struct ReceivedReply {
  bool ended = false;  // The daemon closed the connection; nothing else is set.
  v1::SessionReply message;
  std::vector<UniqueFd> descriptors;
};

// Blocks at most ten seconds in each call; what takes longer fails the test.
class SessionClient {
 public:
  explicit SessionClient(const std::string& path);
  // One that is connected already.
  explicit SessionClient(UniqueFd socket) : socket_(std::move(socket)) {}

  void Send(absl::string_view packet, const std::vector<int>& descriptors = {});
  ReceivedReply Receive();

  // Says hello; returns the session's id, or none when it was not welcomed.
  SessionId Open(const std::string& name = "test", bool observer = false);
  // Asks for a block's descriptor and reads the reply.
  ReceivedReply Fetch(BlockId block) { return Fetch({&block, 1}); }
  ReceivedReply Fetch(absl::Span<const BlockId> blocks);
  // Reads until the daemon has closed the connection. False if it does not.
  bool IsDropped();
  // Bytes of replies that are there to be read.
  int UnreadBytes() const;

  UniqueFd& socket() { return socket_; }

 private:
  UniqueFd socket_;
};

// What a file in memory of TestCore says of itself.
std::string Content(const UniqueFd& fd);

// A server on a core, and its socket.
class SessionServerTest : public testing::Test {
 protected:
  explicit SessionServerTest(const SessionServerOptions& options = {});

  SessionClient Connect() { return SessionClient(path_); }
  size_t SessionCount() const {
    return core_.sessions.Count().clients + core_.sessions.Count().observers;
  }
  size_t OwnDescriptors() const;

  TempDir dir_;
  const std::string path_ = dir_.File("session.sock");
  TestCore core_;
  std::unique_ptr<SessionServer> server_;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_SESSION_SESSION_CLIENT_H_
