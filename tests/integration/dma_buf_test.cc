// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A daemon and clients that ask it for dma-bufs. Runs in tests/drivers/dmabuf-vm,
// whose driver exports some.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/integration/daemon_fixture.h"

namespace heapbroker {
namespace {

constexpr int kSize = 1 << 20;

using DmaBufTest = DaemonFixture;

TEST_F(DmaBufTest, AClientUsesWhatTheDaemonClearedAndExported) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon({"--clear=always"}));
  const std::unique_ptr<ClientProcess> client = StartClient();
  ASSERT_NE(client, nullptr);
  ASSERT_THAT(client->Ask(absl::StrCat("allocate block ", kSize, " handle=dma_buf")), IsOk());
  EXPECT_THAT(client->Ask("zeros block"), IsOk());
  EXPECT_THAT(client->Ask(absl::StrCat("fill block 0 ", kSize, " 7")), IsOk());
  EXPECT_THAT(client->Ask(absl::StrCat("check block 0 ", kSize, " 7")), IsOk());
  ASSERT_THAT(client->Ask(absl::StrCat("allocate copy ", kSize, " handle=opaque_fd")), IsOk());
  EXPECT_THAT(client->Ask("copy block copy"), IsOk());
  EXPECT_THAT(client->Ask(absl::StrCat("check copy 0 ", kSize, " 7")), IsOk());
}

TEST_F(DmaBufTest, NeitherHandleTypeIsServedFromTheOthersIdleBlocks) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const std::unique_ptr<ClientProcess> client = StartClient();
  ASSERT_NE(client, nullptr);
  const auto lease = [&](const std::string& term) {
    EXPECT_THAT(client->Ask(absl::StrCat("allocate block ", kSize, " ", term)), IsOk());
    EXPECT_THAT(client->Ask("give-back block"), IsOk());
    return Hits();
  };
  EXPECT_EQ(lease("handle=dma_buf"), 0u);
  EXPECT_EQ(lease("handle=opaque_fd"), 0u);
  EXPECT_EQ(lease("handle=dma_buf"), 1u);
  EXPECT_EQ(lease("handle=opaque_fd"), 2u);
}

}  // namespace
}  // namespace heapbroker
