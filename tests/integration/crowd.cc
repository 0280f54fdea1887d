// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Takes all that a daemon lets one user have: sessions of both kinds, connections, and
// calls that are never answered for want of someone who reads. Says how many when the
// daemon has no more to give, and holds them until its input ends.
//
//   crowd RUNTIME_DIR
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/posix/unix_socket.h"
#include "tests/integration/raw_session.h"

namespace heapbroker {
namespace {

// So that a daemon without a limit does not keep the test for ever.
constexpr size_t kEnough = 10'000;

// Sessions, until one is refused.
std::vector<RawSocket> TakeSessions(const std::string& path, bool observers) {
  v1::SessionRequest hello;
  hello.ParseFromString(HelloPacket("crowd"));
  hello.mutable_hello()->set_observer(observers);
  std::vector<RawSocket> sessions;
  while (sessions.size() < kEnough) {
    absl::StatusOr<RawSocket> socket = RawSocket::Connect(path);
    if (!socket.ok()) break;
    const absl::StatusOr<RawSocket::Reply> reply = socket->Ask(hello.SerializeAsString());
    if (!reply.ok() || !reply->message.has_welcome()) break;
    sessions.push_back(*std::move(socket));
  }
  return sessions;
}

// Connections that say nothing, until one is closed.
std::vector<UniqueFd> TakeConnections(const std::string& path) {
  std::vector<UniqueFd> connections;
  while (connections.size() < kEnough) {
    absl::StatusOr<UniqueFd> connection = ConnectUnix(path, SocketKind::kStream, absl::Seconds(20));
    if (!connection.ok()) break;
    // HTTP/2's first words, for which the server answers with its own.
    const std::string preface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
    char byte = 0;
    if (send(connection->get(), preface.data(), preface.size(), MSG_NOSIGNAL) < 0 ||
        !WaitReadable(*connection, absl::Seconds(20)).ok() ||
        recv(connection->get(), &byte, 1, 0) <= 0) {
      break;
    }
    connections.push_back(*std::move(connection));
  }
  return connections;
}

int Run(const std::string& runtime_dir) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const std::string session_socket = absl::StrCat(runtime_dir, "/session.sock");
  const auto observers = TakeSessions(session_socket, /*observers=*/true);
  const auto clients = TakeSessions(session_socket, /*observers=*/false);
  const auto connections = TakeConnections(absl::StrCat(runtime_dir, "/broker.sock"));
  std::cout << observers.size() << " " << clients.size() << " " << connections.size() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) { return argc == 2 ? heapbroker::Run(argv[1]) : EXIT_FAILURE; }
