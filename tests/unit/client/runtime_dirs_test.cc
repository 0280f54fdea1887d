// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/runtime_dirs.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;

TEST(RuntimeDirsTest, ANamedDirectoryIsTheOnlyOne) {
  EXPECT_THAT(
      RuntimeDirCandidates({.option = "/a", .environment = "/b", .xdg_runtime_dir = "/run/user/1"}),
      ElementsAre("/a"));
  EXPECT_THAT(RuntimeDirCandidates({.environment = "/b", .xdg_runtime_dir = "/run/user/1"}),
              ElementsAre("/b"));
}

TEST(RuntimeDirsTest, TheSystemsDirectoryComesBeforeTheUsers) {
  EXPECT_THAT(RuntimeDirCandidates({.xdg_runtime_dir = "/run/user/1"}),
              ElementsAre("/run/heapbroker", "/run/user/1/heapbroker"));
  EXPECT_THAT(RuntimeDirCandidates({}), ElementsAre("/run/heapbroker"));
}

TEST(RuntimeDirsTest, ATargetKeepsPlainPathsAndEncodesTheRest) {
  EXPECT_EQ(GrpcTarget("/run/heap-broker_1.x/broker.sock"),
            "unix:/run/heap-broker_1.x/broker.sock");
  EXPECT_EQ(GrpcTarget("/a b/50%?#"), "unix:/a%20b/50%25%3f%23");
  EXPECT_EQ(GrpcTarget("/\xc3\xbc"), "unix:/%c3%bc");
}

}  // namespace
}  // namespace heapbroker
