// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "common/posix/packet.h"
#include "gtest/gtest.h"
#include "tests/unit/session/session_client.h"

namespace heapbroker {
namespace {

constexpr uid_t kNobody = 65534;
constexpr rlim_t kFewDescriptors = 64;

// The kernel counts a user's unread descriptors, but not root's, so this runs in
// a process of another user.
class DescriptorLimitsTest : public testing::Test {
 protected:
  // Returns what `body` returned there; its expectations count, too.
  static void RunAsNobody(void (*body)()) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlimit few{.rlim_cur = kFewDescriptors, .rlim_max = kFewDescriptors};
      if (setrlimit(RLIMIT_NOFILE, &few) != 0 || (getuid() == 0 && setuid(kNobody) != 0)) _exit(2);
      body();
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
};

class LimitedServer : public SessionServerTest {
 public:
  void TestBody() override {
    SessionClient client = Connect();
    const SessionId session = client.Open();
    const BlockId block = core_.Lease(session);
    EXPECT_EQ(client.Fetch(block).descriptors.size(), 1u);
    {
      const std::vector<UniqueFd> others = FillWithUnreadDescriptors();
      const ReceivedReply reply = client.Fetch(block);
      EXPECT_EQ(reply.message.refusal().code(),
                static_cast<uint32_t>(absl::StatusCode::kResourceExhausted))
          << reply.message.ShortDebugString();
      EXPECT_TRUE(client.Fetch(BlockId(99)).message.has_refusal());
    }
    EXPECT_EQ(client.Fetch(block).descriptors.size(), 1u);
  }

 private:
  // Somebody of the same user who reads nothing.
  static std::vector<UniqueFd> FillWithUnreadDescriptors() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    std::vector<UniqueFd> sockets;
    sockets.emplace_back(ends[0]);
    sockets.emplace_back(ends[1]);
    const UniqueFd file(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const std::vector<int> some(kFewDescriptors / 2, file.get());
    absl::StatusOr<SendResult> sent = SendResult::kSent;
    for (int i = 0; i < 100 && sent.ok(); ++i) sent = SendPacket(sockets[0], "x", some);
    EXPECT_TRUE(absl::IsResourceExhausted(sent.status())) << sent.status();
    return sockets;
  }
};

TEST_F(DescriptorLimitsTest, TooManyUnreadDescriptorsOfOthersRefuseAFetchAndNoMore) {
  RunAsNobody([] { LimitedServer().TestBody(); });
}

}  // namespace
}  // namespace heapbroker
