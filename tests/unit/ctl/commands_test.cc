// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What heapbrokerctl asks, and what it makes of the answers.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/process.h"
#include "tests/unit/ctl/fake_services.h"

namespace heapbroker {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

CommandResult Ctl(const FakeServices& services, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {HEAPBROKERCTL_PROGRAM, "--runtime-dir",
                                      services.runtime_dir()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const auto result = RunCommand({.command = command}, absl::Seconds(30));
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? *result : CommandResult();
}

template <typename Message>
Message FromJson(const std::string& text) {
  Message message;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &message);
  EXPECT_TRUE(status.ok()) << status.ToString() << "\n" << text;
  return message;
}

class CtlCommandsTest : public ::testing::Test {
 protected:
  FakeServices services_;
};

TEST_F(CtlCommandsTest, TrimmingEverythingIsTheDefault) {
  v1::TrimResponse trimmed;
  trimmed.set_blocks(12);
  trimmed.set_bytes(uint64_t{3} << 29);
  services_.AnswerTrimWith(grpc::Status::OK, trimmed);
  const CommandResult result = Ctl(services_, {"trim"});
  EXPECT_EQ(result.status, Exited(0)) << result.error_output;
  EXPECT_EQ(result.output, "freeing 12 blocks, 1.5 GiB\n");
  ASSERT_EQ(services_.trims().size(), 1u);
  const v1::TrimRequest request = services_.trims()[0];
  EXPECT_FALSE(request.has_device_index());
  EXPECT_FALSE(request.has_pool());
  EXPECT_EQ(request.target_bytes(), 0u);
  EXPECT_FALSE(request.segments());
}

TEST_F(CtlCommandsTest, ATrimSaysDevicePoolAndTarget) {
  const CommandResult result = Ctl(
      services_, {"trim", "--device", "0", "--pool", "type 1", "--segments", "512MiB", "--json"});
  EXPECT_EQ(result.status, Exited(0)) << result.error_output;
  EXPECT_EQ(FromJson<v1::TrimResponse>(result.output).blocks(), 0u);
  ASSERT_EQ(services_.trims().size(), 1u);
  const v1::TrimRequest request = services_.trims()[0];
  EXPECT_TRUE(request.has_device_index()) << "device 0 is one, too";
  EXPECT_EQ(request.pool(), "type 1");
  EXPECT_EQ(request.target_bytes(), uint64_t{512} << 20);
  EXPECT_TRUE(request.segments());
}

TEST_F(CtlCommandsTest, APoolThatIsNotThereIsARefusalAndNoLostDaemon) {
  services_.AnswerTrimWith(
      grpc::Status(grpc::StatusCode::NOT_FOUND, "there is no pool \"x\"; there is \"type 0\""), {});
  const CommandResult result = Ctl(services_, {"trim", "--pool", "x"});
  EXPECT_EQ(result.status, Exited(1));
  EXPECT_THAT(result.output, IsEmpty());
  EXPECT_THAT(result.error_output, HasSubstr("there is \"type 0\""));
}

TEST_F(CtlCommandsTest, WhoMayNotTrimIsToldWhoMay) {
  services_.AnswerTrimWith(grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "only root may trim"),
                           {});
  const CommandResult result = Ctl(services_, {"trim"});
  EXPECT_EQ(result.status, Exited(1));
  EXPECT_THAT(result.error_output, HasSubstr("only root may trim"));
}

TEST_F(CtlCommandsTest, ATargetThatIsNoSizeIsAnErrorOfUsage) {
  for (const char* target : {"1.5gib", "-1", "many"}) {
    const CommandResult result = Ctl(services_, {"trim", "--", target});
    EXPECT_EQ(result.status, Exited(2)) << target;
    EXPECT_THAT(result.error_output, HasSubstr(target));
  }
  EXPECT_THAT(services_.trims(), IsEmpty());
}

TEST_F(CtlCommandsTest, AllPagesOfLeasesAreOneList) {
  services_.SetLeases(5);
  const CommandResult result = Ctl(services_, {"leases"});
  EXPECT_EQ(result.status, Exited(0)) << result.error_output;
  EXPECT_THAT(result.output, HasSubstr("5 leases"));
  EXPECT_EQ(services_.lease_requests().size(), 3u);
  EXPECT_EQ(services_.lease_requests()[0].session_id(), 0u);
  const auto all = FromJson<v1::ListLeasesResponse>(Ctl(services_, {"leases", "--json"}).output);
  EXPECT_EQ(all.leases_size(), 5);
}

TEST_F(CtlCommandsTest, LeasesOfOneSessionAreAskedForOnEveryPage) {
  services_.SetLeases(3);
  EXPECT_EQ(Ctl(services_, {"leases", "--session", "42"}).status, Exited(0));
  ASSERT_EQ(services_.lease_requests().size(), 2u);
  for (const v1::ListLeasesRequest& request : services_.lease_requests()) {
    EXPECT_EQ(request.session_id(), 42u);
  }
}

TEST_F(CtlCommandsTest, AWatchIsALineOfJsonForEachReply) {
  services_.SetWatchReplies(3);
  const CommandResult result = Ctl(services_, {"stats", "--watch=250ms", "--json"});
  EXPECT_EQ(result.status, Exited(3)) << "the daemon went away";
  EXPECT_THAT(result.error_output, HasSubstr("shutting down"));
  const std::vector<std::string> lines = absl::StrSplit(result.output, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(FromJson<v1::GetStatsResponse>(lines[i]).version(), absl::StrCat("1.", i));
  }
  ASSERT_EQ(services_.watch_requests().size(), 1u);
  EXPECT_EQ(services_.watch_requests()[0].interval().seconds(), 0);
  EXPECT_EQ(services_.watch_requests()[0].interval().nanos(), 250'000'000);
}

TEST_F(CtlCommandsTest, AWatchThatIsNoTerminalsHasATextForEachReply) {
  services_.SetWatchReplies(2);
  const CommandResult result = Ctl(services_, {"stats", "--watch"});
  EXPECT_THAT(result.output, StartsWith("heapbrokerd 1.0,"));
  EXPECT_THAT(result.output, HasSubstr("\n\nheapbrokerd 1.1,"));
  EXPECT_THAT(result.output, Not(HasSubstr("\x1b")));
  ASSERT_EQ(services_.watch_requests().size(), 1u);
  EXPECT_EQ(services_.watch_requests()[0].interval().seconds(), 1);
}

TEST_F(CtlCommandsTest, AWatchOnATerminalPaintsOneTextOverTheOther) {
  services_.SetWatchReplies(2);
  // script(1) runs a command on a terminal of its own.
  const auto result =
      RunCommand({.command = {"script", "--quiet", "--return", "--command",
                              absl::StrCat(HEAPBROKERCTL_PROGRAM " --runtime-dir ",
                                           services_.runtime_dir(), " stats --watch=100ms"),
                              "/dev/null"}},
                 absl::Seconds(30));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->status, Exited(3)) << "the daemon went away";
  EXPECT_THAT(result->output, HasSubstr("\x1b[Hheapbrokerd 1.0,"));
  EXPECT_THAT(result->output, HasSubstr("\x1b[Hheapbrokerd 1.1,"));
}

TEST_F(CtlCommandsTest, AnIntervalThatIsNoneIsAnErrorOfUsage) {
  for (const char* interval : {"--watch=soon", "--watch=99ms", "--watch=2h"}) {
    const CommandResult result = Ctl(services_, {"stats", interval});
    EXPECT_EQ(result.status, Exited(2)) << interval;
    EXPECT_THAT(result.error_output, HasSubstr("100ms to 1h"));
  }
  EXPECT_THAT(services_.watch_requests(), IsEmpty());
}

TEST_F(CtlCommandsTest, PoolsAndHeapsAreTheStatistics) {
  for (const char* verb : {"pools", "heaps"}) {
    const CommandResult result = Ctl(services_, {verb});
    EXPECT_EQ(result.status, Exited(0)) << result.error_output;
    EXPECT_THAT(result.output, StartsWith("device 0: no device"));
    const CommandResult json = Ctl(services_, {verb, "--json"});
    EXPECT_EQ(FromJson<v1::GetStatsResponse>(json.output).devices_size(), 1);
  }
}

TEST(CtlOldDaemonTest, ACommandThatItDoesNotKnowSaysSo) {
  const FakeServices services(FakeServices::Age::kOld);
  const CommandResult result = Ctl(services, {"trim"});
  EXPECT_EQ(result.status, Exited(1));
  EXPECT_THAT(result.error_output, HasSubstr("older than heapbrokerctl"));
}

}  // namespace
}  // namespace heapbroker
