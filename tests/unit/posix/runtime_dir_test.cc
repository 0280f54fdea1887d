// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/runtime_dir.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"

namespace heapbroker {
namespace {

constexpr absl::Duration kLong = absl::Seconds(10);

class RuntimeDirTest : public testing::Test {
 protected:
  RuntimeDir Acquire(mode_t mode = 0750) {
    absl::StatusOr<RuntimeDir> dir = RuntimeDir::Acquire(path_, mode);
    EXPECT_TRUE(dir.ok()) << dir.status();
    return *std::move(dir);
  }
  bool CanConnect(const std::string& name) {
    return ConnectUnix(absl::StrCat(path_, "/", name), SocketKind::kSeqPacket, kLong).ok();
  }
  mode_t ModeOf(const std::string& path) {
    struct stat info;
    return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }

  // A process that holds the directory and listens in it until it is killed.
  pid_t StartHolder() {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      absl::StatusOr<RuntimeDir> dir = RuntimeDir::Acquire(path_, 0750);
      if (!dir.ok()) _exit(1);
      const absl::StatusOr<UniqueFd> socket = dir->Listen("s.sock", SocketKind::kSeqPacket, 0600);
      if (!socket.ok() || write(ready[1], "x", 1) != 1) _exit(1);
      while (true) pause();
    }
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
  }
  static void Kill(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  TempDir temp_;
  const std::string path_ = temp_.File("run");
};

TEST_F(RuntimeDirTest, IsMadeWithExactlyTheModeWhateverTheUmask) {
  for (const mode_t mask : {0000, 0777}) {
    const mode_t before = umask(mask);
    { const RuntimeDir dir = Acquire(0750); }
    umask(before);
    EXPECT_EQ(ModeOf(path_), 0750u) << mask;
    unlink(absl::StrCat(path_, "/", kLockFileName).c_str());
    ASSERT_EQ(rmdir(path_.c_str()), 0);
  }
}

TEST_F(RuntimeDirTest, OneThatExistsKeepsItsMode) {
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  const RuntimeDir dir = Acquire(0755);
  EXPECT_EQ(ModeOf(path_), 0700u);
}

TEST_F(RuntimeDirTest, ASecondHolderIsRefusedWithThePidOfTheFirst) {
  const pid_t holder = StartHolder();
  const absl::Status status = RuntimeDir::Acquire(path_, 0750).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "already running")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), absl::StrCat("process ", holder, " "))) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), path_)) << status;
  EXPECT_TRUE(CanConnect("s.sock"));
  Kill(holder);
}

TEST_F(RuntimeDirTest, ASecondHolderInTheSameProcessIsRefusedToo) {
  const RuntimeDir dir = Acquire();
  EXPECT_TRUE(absl::IsFailedPrecondition(RuntimeDir::Acquire(path_, 0750).status()));
}

TEST_F(RuntimeDirTest, ReplacesTheSocketOfAKilledHolder) {
  Kill(StartHolder());
  EXPECT_FALSE(CanConnect("s.sock"));
  RuntimeDir dir = Acquire();
  const absl::StatusOr<UniqueFd> socket = dir.Listen("s.sock", SocketKind::kSeqPacket, 0600);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_TRUE(CanConnect("s.sock"));
}

TEST_F(RuntimeDirTest, LeavesAloneWhatIsNotASocket) {
  RuntimeDir dir = Acquire();
  std::ofstream(absl::StrCat(path_, "/s.sock")) << "precious";
  const absl::Status status = dir.Listen("s.sock", SocketKind::kSeqPacket, 0600).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(ModeOf(absl::StrCat(path_, "/s.sock")), 0u);
}

TEST_F(RuntimeDirTest, RemovesItsSocketsAtTheEndAndCanBeHeldAgain) {
  {
    RuntimeDir dir = Acquire();
    const absl::StatusOr<UniqueFd> socket = dir.Listen("s.sock", SocketKind::kSeqPacket, 0600);
    ASSERT_TRUE(socket.ok()) << socket.status();
  }
  EXPECT_EQ(ModeOf(absl::StrCat(path_, "/s.sock")), 0u);
  const RuntimeDir again = Acquire();
}

TEST_F(RuntimeDirTest, MovingMovesTheLockAndTheSockets) {
  std::optional<RuntimeDir> first(Acquire());
  const absl::StatusOr<UniqueFd> socket = first->Listen("s.sock", SocketKind::kSeqPacket, 0600);
  ASSERT_TRUE(socket.ok()) << socket.status();
  const RuntimeDir second = *std::move(first);
  first.reset();
  EXPECT_TRUE(CanConnect("s.sock"));
  EXPECT_FALSE(RuntimeDir::Acquire(path_, 0750).ok());
}

TEST_F(RuntimeDirTest, ErrorsNameThePathAndWhatIsWrong) {
  std::ofstream(temp_.File("file")) << "x";
  const absl::Status file = RuntimeDir::Acquire(temp_.File("file"), 0750).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(file)) << file;
  EXPECT_TRUE(absl::StrContains(file.message(), "not a directory")) << file;

  const absl::Status orphan = RuntimeDir::Acquire(temp_.File("no/such"), 0750).status();
  EXPECT_TRUE(absl::IsNotFound(orphan)) << orphan;
  EXPECT_TRUE(absl::StrContains(orphan.message(), temp_.File("no/such"))) << orphan;

  const absl::Status too_long = RuntimeDir::Acquire(std::string(200, 'x'), 0750).status();
  EXPECT_TRUE(absl::IsInvalidArgument(too_long)) << too_long;
  EXPECT_TRUE(absl::IsInvalidArgument(RuntimeDir::Acquire("", 0750).status()));
}

TEST_F(RuntimeDirTest, ADirectoryThatOthersCanWriteIsRefused) {
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  ASSERT_EQ(chmod(path_.c_str(), 01777), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(RuntimeDir::Acquire(path_, 0750).status()));
}

TEST_F(RuntimeDirTest, ADirectoryThatTheOwnGroupCanWriteIsUsed) {
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  ASSERT_EQ(chown(path_.c_str(), geteuid(), getegid()), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0770), 0);
  const RuntimeDir dir = Acquire();
}

TEST_F(RuntimeDirTest, ADirectoryThatAnotherGroupCanWriteIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory to any group";
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  ASSERT_EQ(chown(path_.c_str(), geteuid(), 65534), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0770), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(RuntimeDir::Acquire(path_, 0750).status()));
  ASSERT_EQ(chmod(path_.c_str(), 0750), 0);
  const RuntimeDir dir = Acquire();
}

TEST_F(RuntimeDirTest, ADirectoryOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  ASSERT_EQ(chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(RuntimeDir::Acquire(path_, 0750).status()));
}

TEST_F(RuntimeDirTest, ALockFileIsNotFollowedToSomewhereElse) {
  ASSERT_EQ(mkdir(path_.c_str(), 0700), 0);
  const std::string target = temp_.File("target");
  ASSERT_EQ(symlink(target.c_str(), absl::StrCat(path_, "/", kLockFileName).c_str()), 0);
  EXPECT_FALSE(RuntimeDir::Acquire(path_, 0750).ok());
  EXPECT_EQ(ModeOf(target), 0u);
}

}  // namespace
}  // namespace heapbroker
