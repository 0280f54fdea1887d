// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One digits process at a time: what it prints, and how it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/digits/digits_runs.h"
#include "tests/integration/digits/sample_files.h"
#include "tests/support/daemon_process.h"
#include "tests/support/temp_dir.h"

namespace digits {
namespace {

using ::heapbroker::CommandResult;
using ::heapbroker::DaemonProcess;
using ::heapbroker::Exited;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

class DigitsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto daemon = DaemonProcess::Start();
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }

  CommandResult Run(const std::vector<std::string>& flags = {}) {
    const auto result = RunDigits(daemon_->runtime_dir(), flags);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(CommandResult{});
  }

  std::string File(const std::string& name, const std::string& contents) {
    WriteFile(dir_.File(name), contents);
    return dir_.File(name);
  }

  heapbroker::TempDir dir_;
  std::unique_ptr<DaemonProcess> daemon_;
};

TEST_F(DigitsTest, PrintsTheResultAndTheTimeOfEachStep) {
  const CommandResult result = Run();
  EXPECT_EQ(result.status, Exited(0)) << result.error_output;
  EXPECT_THAT(result.output, HasSubstr("\n963 of 1000 correct\n"));
  EXPECT_THAT(result.output, MatchesRegex("connect +[0-9.]+ ms .*\n"
                                          "device +[0-9.]+ ms .*\n"
                                          "weights +[0-9.]+ ms  loaded.*\n"
                                          "inference +[0-9.]+ ms .*\n(.|\n)*"));
}

TEST_F(DigitsTest, FindsTheWeightsThatAnEarlierProcessLeft) {
  EXPECT_THAT(Run().output, HasSubstr("loaded"));
  const CommandResult second = Run();
  EXPECT_THAT(second.output, AllOf(HasSubstr("attached"), HasSubstr("963 of 1000 correct")));
}

TEST_F(DigitsTest, KeepsOtherWeightsInASegmentOfTheirOwn) {
  EXPECT_THAT(Run().output, HasSubstr("loaded"));
  const std::string other = File("other.safetensors", ModelWithZeroedRow(0));
  EXPECT_THAT(Run({"--model", other}).output, AllOf(HasSubstr("loaded"), Not(HasSubstr("963"))));
  EXPECT_THAT(Run().output, AllOf(HasSubstr("attached"), HasSubstr("963 of 1000 correct")));
}

TEST_F(DigitsTest, RefusesASegmentWithOtherContentsOfTheSameSize) {
  ASSERT_EQ(Run({"--segment", "shared"}).status, Exited(0));
  const std::string other = File("other.safetensors", ModelWithZeroedRow(0));
  const CommandResult result = Run({"--segment=shared", "--model", other});
  EXPECT_EQ(result.status, Exited(1));
  EXPECT_THAT(result.error_output,
              AllOf(HasSubstr("segment \"shared\""), HasSubstr("other weights"), HasSubstr(other)));
}

TEST_F(DigitsTest, RefusesASegmentOfAnotherSize) {
  ASSERT_EQ(Run({"--segment", "shared"}).status, Exited(0));
  // One layer, 784 to 10, and only that.
  const std::string header =
      R"({"fc1.bias":{"dtype":"F32","shape":[10],"data_offsets":[0,40]},)"
      R"("fc1.weight":{"dtype":"F32","shape":[10,784],"data_offsets":[40,31400]}})";
  const std::string small = File("small.safetensors", Safetensors(header, 31400));
  const CommandResult result = Run({"--segment", "shared", "--model", small});
  EXPECT_EQ(result.status, Exited(1));
  EXPECT_THAT(result.error_output, HasSubstr("segment \"shared\""));
  // It is the size that is refused, not the model.
  EXPECT_EQ(Run({"--model", small}).status, Exited(0));
}

TEST_F(DigitsTest, RefusesBadFilesWithASentenceThatNamesThem) {
  const std::string whole = ReadFile(ModelPath());
  const std::string cut = File("cut.safetensors", whole.substr(0, whole.size() - 1));
  const CommandResult result = Run({"--model", cut});
  EXPECT_EQ(result.status, Exited(1));
  EXPECT_THAT(result.output, IsEmpty());
  EXPECT_THAT(result.error_output, AllOf(HasSubstr("digits: " + cut), HasSubstr(".\n")));

  EXPECT_THAT(Run({"--images", LabelsPath()}).error_output, HasSubstr(LabelsPath()));
  EXPECT_THAT(Run({"--model", File("small", SmallModel())}).error_output, HasSubstr("784 pixels"));
}

TEST_F(DigitsTest, RefusesALabelThatTheModelCannotAnswer) {
  std::string labels = ReadFile(LabelsPath());
  labels.back() = 10;
  const CommandResult result = Run({"--labels", File("labels", labels)});
  EXPECT_EQ(result.status, Exited(1));
  EXPECT_THAT(result.error_output, HasSubstr("label 999 is 10"));
}

TEST_F(DigitsTest, RefusesWrongFlagsWithExitCodeTwo) {
  const std::vector<std::vector<std::string>> wrong = {{"--what"},
                                                       {"images"},
                                                       {"--model"},
                                                       {"--model="},
                                                       {"--hold", "-1"},
                                                       {"--hold=soon"},
                                                       {"--hold-until-stdin-closes=1"}};
  for (const std::vector<std::string>& flags : wrong) {
    const CommandResult result = Run(flags);
    EXPECT_EQ(result.status, Exited(2)) << flags[0];
    EXPECT_THAT(result.error_output, AllOf(HasSubstr("--"), HasSubstr("--help"))) << flags[0];
  }
  const CommandResult help = Run({"--help"});
  EXPECT_EQ(help.status, Exited(0));
  EXPECT_THAT(help.output, HasSubstr("--hold-until-stdin-closes"));
}

TEST_F(DigitsTest, SaysThatThereIsNoDaemon) {
  const auto result = RunDigits(dir_.path());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->status, Exited(1));
  EXPECT_THAT(result->error_output, HasSubstr("cannot connect to heapbrokerd"));
}

}  // namespace
}  // namespace digits
