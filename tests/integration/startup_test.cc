// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Who may start, where, and on which device.
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/raw_session.h"

namespace heapbroker {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLimit = absl::Seconds(30);

class StartupTest : public DaemonFixture {
 protected:
  // A daemon that is expected to refuse; its own directory unless one is named.
  absl::StatusOr<CommandResult> RunDaemon(const std::vector<std::string>& flags,
                                          std::optional<std::string> dir = std::nullopt) {
    ProcessOptions options;
    options.command = {HeapbrokerdPath(), "--runtime-dir", dir.value_or(dir_.File("refused"))};
    options.command.insert(options.command.end(), flags.begin(), flags.end());
    return RunCommand(options, kLimit);
  }

  // The device of a daemon that is started with the flags and stopped again.
  v1::Device DeviceOf(const std::vector<std::string>& flags) {
    StartDaemon(flags);
    if (HasFatalFailure()) return {};
    const v1::GetStatsResponse stats = Stats();
    EXPECT_EQ(stats.devices_size(), 1);
    const auto ended = daemon_->Stop();
    EXPECT_THAT(ended, IsOk());
    return stats.devices_size() == 1 ? stats.devices(0).device() : v1::Device();
  }
};

TEST_F(StartupTest, ASecondDaemonOfTheDirectoryIsRefusedAndTheFirstOneServesOn) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  ASSERT_OK_AND_ASSIGN(const CommandResult second, RunDaemon({}, runtime_dir()));
  EXPECT_EQ(second.status, Exited(1));
  EXPECT_THAT(second.error_output, HasSubstr("already running"));
  EXPECT_THAT(second.error_output, HasSubstr(absl::StrCat(daemon_->pid())));

  EXPECT_THAT(client->Ask("allocate a 100000"), IsOk());
  EXPECT_TRUE(StartClient("later") != nullptr);
}

TEST_F(StartupTest, AKilledDaemonsSocketsAreReplaced) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  ASSERT_THAT(daemon_->process().Signal(SIGKILL), IsOk());
  ASSERT_THAT(daemon_->process().Wait(kLimit), IsOk());
  // They are still there, and nobody listens.
  EXPECT_THAT(RawSocket::Connect(SocketPath("session.sock")),
              StatusIs(absl::StatusCode::kUnavailable, "session.sock"));

  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  EXPECT_THAT(client->Ask("allocate a 100000"), IsOk());
}

TEST_F(StartupTest, AStoppedDaemonLeavesNoSockets) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  ASSERT_OK_AND_ASSIGN(const ExitStatus ended, daemon_->Stop());
  EXPECT_EQ(ended, Exited(0));
  EXPECT_THAT(RawSocket::Connect(SocketPath("session.sock")),
              StatusIs(absl::StatusCode::kNotFound, "session.sock"));
}

TEST_F(StartupTest, ADeviceCanBeNamedByIndexNameOrUuid) {
  const v1::Device best = DeviceOf({});
  ASSERT_EQ(best.device_uuid().size(), 16u);
  const v1::Device by_name = DeviceOf({absl::StrCat("--device=", best.name())});
  EXPECT_EQ(by_name.name(), best.name());
  const v1::Device by_uuid =
      DeviceOf({absl::StrCat("--device=", absl::BytesToHexString(best.device_uuid()))});
  EXPECT_EQ(by_uuid.device_uuid(), best.device_uuid());
  // Among several devices the best need not be the loader's first.
  const v1::Device by_index = DeviceOf({"--device=0"});
  EXPECT_EQ(by_index.device_uuid().size(), 16u);
  ASSERT_OK_AND_ASSIGN(const CommandResult refused, RunDaemon({"--device=99"}));
  EXPECT_EQ(refused.status, Exited(1));
  EXPECT_THAT(refused.error_output, HasSubstr(absl::StrCat("0 = '", by_index.name(), "'")));
}

TEST_F(StartupTest, AnUnknownDeviceIsRefusedWithTheListOfDevices) {
  const v1::Device best = DeviceOf({});
  ASSERT_OK_AND_ASSIGN(const CommandResult refused, RunDaemon({"--device=abacus"}));
  EXPECT_EQ(refused.status, Exited(1));
  EXPECT_THAT(refused.error_output, HasSubstr("no device is 'abacus'"));
  EXPECT_THAT(refused.error_output, HasSubstr(absl::StrCat("= '", best.name(), "'")));
}

TEST_F(StartupTest, ASoftwareDeviceIsRefusedWhereHardwareIsRequired) {
  const v1::Device best = DeviceOf({});
  if (!best.software()) GTEST_SKIP() << "there is hardware: " << best.name();
  ASSERT_OK_AND_ASSIGN(const CommandResult refused, RunDaemon({"--require-hardware"}));
  EXPECT_EQ(refused.status, Exited(1));
  EXPECT_THAT(refused.error_output, HasSubstr("no hardware device can be used"));
  EXPECT_THAT(refused.error_output, HasSubstr(best.name()));
}

TEST_F(StartupTest, ASoftwareDeviceIsTakenWithAWarningAndSaidInTheStatistics) {
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  const v1::GetStatsResponse stats = Stats();
  ASSERT_EQ(stats.devices_size(), 1);
  if (!stats.devices(0).device().software()) GTEST_SKIP() << "there is hardware";
  EXPECT_THAT(daemon_->Log(), HasSubstr("software device"));
}

}  // namespace
}  // namespace heapbroker
