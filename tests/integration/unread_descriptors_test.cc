// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A client that asks for a thousand descriptors and reads none holds up nobody
// but itself. The kernel counts unread descriptors against the sender's user, all
// connections together, and spares root: so the daemon is an ordinary user's,
// with a low limit.
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/integration/hostile_fixture.h"

namespace heapbroker {
namespace {

constexpr uid_t kDaemonsUser = 1001;
constexpr int kRequests = 1000;

class UnreadDescriptorsTest : public HostileFixture {
 protected:
  void SetUp() override {
    DaemonOptions options;
    ASSERT_NO_FATAL_FAILURE(options.program = LimitedDaemon());
    if (geteuid() == 0) {
      options.uid = kDaemonsUser;
      // Its own, as RuntimeDir demands.
      ASSERT_EQ(mkdir(runtime_dir().c_str(), 0755), 0);
      ASSERT_EQ(chown(runtime_dir().c_str(), kDaemonsUser, kDaemonsUser), 0);
    }
    Begin(std::move(options));
  }

  // heapbrokerd where the daemon's user can run it, with few descriptors.
  std::string LimitedDaemon() {
    const std::string copy = dir_.File("heapbrokerd");
    std::filesystem::copy_file(HeapbrokerdPath(), copy);
    const std::string script = dir_.File("limited");
    std::ofstream(script) << "#!/bin/sh\nulimit -n 256\nexec " << copy << " \"$@\"\n";
    EXPECT_EQ(chmod(script.c_str(), 0755), 0);
    return script;
  }
};

TEST_F(UnreadDescriptorsTest, DelayNobodyElse) {
  ASSERT_OK_AND_ASSIGN(RawSession greedy, OpenSession());
  ASSERT_OK_AND_ASSIGN(const v1::Block block, greedy.Allocate(65536));
  const int socket = greedy.socket().fd().get();
  // The daemon stops reading it: room for all requests, or as many as this user
  // may have, and no waiting for more.
  const int room = 16 << 20;
  if (setsockopt(socket, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) != 0) {
    ASSERT_EQ(setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
  }
  const std::string request = FetchPacket(block.block_id());
  int asked = 0;
  while (asked < kRequests &&
         send(socket, request.data(), request.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    ++asked;
  }
  // Far more than the daemon can have open, where root lets them in.
  EXPECT_GE(asked, geteuid() == 0 ? kRequests : 200);

  ASSERT_OK_AND_ASSIGN(RawSession worker, OpenSession());
  absl::Duration slowest;
  for (int i = 0; i < 200; ++i) {
    const absl::Time start = absl::Now();
    ASSERT_OK_AND_ASSIGN(const v1::Block own, worker.Allocate(65536));
    ASSERT_THAT(worker.Fetch(own.block_id()), IsOk());
    ASSERT_THAT(worker.Release(own.block_id()), IsOk());
    slowest = std::max(slowest, absl::Now() - start);
  }
  // Two round trips over gRPC and one over a socket: about a millisecond.
  EXPECT_LT(slowest, absl::Seconds(2));
  // Out of the cache, to end with the session.
  ASSERT_THAT(worker.Allocate(65536), IsOk());
}

}  // namespace
}  // namespace heapbroker
