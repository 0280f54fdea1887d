// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/options.h"

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

class OptionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"HEAPBROKER_RUNTIME_DIR", "HEAPBROKER_DEVICE", "HEAPBROKER_LOG_LEVEL"}) {
      unsetenv(name);
    }
  }

  static ParsedOptions Parse(std::initializer_list<const char*> flags) {
    std::vector<const char*> argv = {"heapbrokerd"};
    argv.insert(argv.end(), flags);
    return ParseOptions(static_cast<int>(argv.size()), argv.data());
  }
};

TEST_F(OptionsTest, TakesFlags) {
  const auto parsed =
      Parse({"--runtime-dir", "/tmp/x", "--device", "llvmpipe", "--device", "1",
             "--require-hardware", "--clear", "always", "--heap-budget", "1gib", "--heap-budget",
             "0=2gib", "--software-tenants", "any", "--log-level", "debug"});
  ASSERT_TRUE(std::holds_alternative<DaemonOptions>(parsed));
  const auto& options = std::get<DaemonOptions>(parsed);
  EXPECT_EQ(options.runtime_dir, "/tmp/x");
  EXPECT_EQ(options.devices, (std::vector<std::string>{"llvmpipe", "1"}));
  EXPECT_TRUE(options.require_hardware);
  EXPECT_EQ(options.clear, ClearMode::kAlways);
  EXPECT_EQ(options.software_tenants, TenantRule::kAnyTenant);
  EXPECT_EQ(options.log_level, LogLevel::kDebug);
  ASSERT_EQ(options.heap_budgets.size(), 2u);
  EXPECT_EQ(options.heap_budgets[1].limit, GiB(2));
}

TEST_F(OptionsTest, TakesPoolFlags) {
  const auto parsed = Parse({"--pool", "device_local=1mib;2mib;3", "--pool", "*", "--pool-matching",
                             "exact", "--pool-slack", "25", "--idle-ttl", "90s", "--head-timeout",
                             "1s", "--record", "/tmp/x", "--record-limit", "1gib"});
  ASSERT_TRUE(std::holds_alternative<DaemonOptions>(parsed));
  const auto& options = std::get<DaemonOptions>(parsed);
  ASSERT_EQ(options.pools.size(), 2u);
  EXPECT_EQ(options.pools[0].limits.max_free_allocation_count, 3u);
  EXPECT_EQ(options.matching.matching, Matching::kExact);
  EXPECT_EQ(options.matching.slack_per_mille, 250u);
  EXPECT_EQ(options.idle_ttl, absl::Seconds(90));
  EXPECT_EQ(options.head_timeout, absl::Seconds(1));
  ASSERT_TRUE(options.record.has_value());
  EXPECT_EQ(options.record->path, "/tmp/x");
  EXPECT_EQ(options.record->limit, GiB(1));
}

TEST_F(OptionsTest, WithoutFlagsThereIsAPoolForEveryMemoryTypeAndNoRecording) {
  setenv("HEAPBROKER_RUNTIME_DIR", "/tmp/x", 1);
  const auto options = std::get<DaemonOptions>(Parse({}));
  ASSERT_EQ(options.pools.size(), 1u);
  EXPECT_TRUE(options.pools[0].every_type);
  EXPECT_EQ(options.matching.slack_per_mille, 125u);
  EXPECT_EQ(options.idle_ttl, absl::Minutes(10));
  EXPECT_TRUE(options.devices.empty());
  EXPECT_FALSE(options.record.has_value());
}

TEST_F(OptionsTest, AReplayTakesPoolFlagsAgain) {
  const auto parsed =
      Parse({"--replay", "/tmp/trace", "--pool", "unbounded", "--pool",
             "device_local=1mib,device_local", "--pool-matching", "exact", "--pool-matching",
             "best_fit", "--pool-slack", "0", "--pool-slack", "12.5", "--heap-budget", "1gib"});
  ASSERT_TRUE(std::holds_alternative<ReplayOptions>(parsed));
  const auto& options = std::get<ReplayOptions>(parsed);
  EXPECT_EQ(options.path, "/tmp/trace");
  ASSERT_EQ(options.pools.size(), 2u);
  EXPECT_EQ(options.pools[1].specs.size(), 2u);
  EXPECT_EQ(options.matchings.size(), 2u);
  EXPECT_EQ(options.slacks_per_mille, (std::vector<uint32_t>{0, 125}));
  EXPECT_EQ(options.heap_budgets.size(), 1u);
  EXPECT_TRUE(options.idle_ttls.empty());
}

TEST(ParseSlackTest, TakesPerCentWithOneDecimal) {
  EXPECT_EQ(ParseSlack("0").value_or(1), 0u);
  EXPECT_EQ(ParseSlack("12.5").value_or(0), 125u);
  EXPECT_EQ(ParseSlack("100.0").value_or(0), 1000u);
  for (const char* bad :
       {"", ".", "1.", ".5", "12.55", "-1", "+1", "101", "100.1", "1e1", "12,5"}) {
    EXPECT_THAT(ParseSlack(bad), StatusIs(absl::StatusCode::kInvalidArgument, "0 to 100")) << bad;
  }
}

TEST_F(OptionsTest, AFlagGoesBeforeTheEnvironment) {
  setenv("HEAPBROKER_RUNTIME_DIR", "/tmp/environment", 1);
  EXPECT_EQ(std::get<DaemonOptions>(Parse({})).runtime_dir, "/tmp/environment");
  EXPECT_EQ(std::get<DaemonOptions>(Parse({"--runtime-dir", "/tmp/flag"})).runtime_dir,
            "/tmp/flag");
}

TEST_F(OptionsTest, MistakesEndWithCodeTwo) {
  for (std::initializer_list<const char*> flags :
       {std::initializer_list<const char*>{"--heap-budget", "1.5gib"},
        {"--clear", "never"},
        {"--no-such-flag"},
        {"--device", "0", "1"},
        {"--heap-budget", "x:0=1gib"},
        {"--pool", "device_local=1gx"},
        {"--pool", "unbounded", "--pool", "device_local"},
        {"--pool-matching", "worst_fit"},
        {"--pool-matching", "exact", "--pool-matching", "best_fit"},
        {"--pool-slack", "100.1"},
        {"--idle-ttl", "soon"},
        {"--head-timeout", "0"},
        {"--record-limit", "1gib"},
        {"--record", "/tmp/x", "--record-limit", "much"},
        {"--record", "/tmp/x", "--replay", "/tmp/x"},
        {"--log-level", "loud"}}) {
    const auto parsed = Parse(flags);
    ASSERT_TRUE(std::holds_alternative<ExitNow>(parsed)) << *flags.begin();
    EXPECT_EQ(std::get<ExitNow>(parsed).code, 2);
  }
}

TEST_F(OptionsTest, HelpAndVersionEndWell) {
  EXPECT_EQ(std::get<ExitNow>(Parse({"--help"})).code, 0);
  EXPECT_EQ(std::get<ExitNow>(Parse({"--version"})).code, 0);
}

// The effective user, as which DefaultRuntimeDir asks, is nobody's for a while
// if the test runs as root. Also given back if the test fails.
class DefaultRuntimeDirTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const text = std::getenv("XDG_RUNTIME_DIR");
    if (text != nullptr) xdg_runtime_dir_ = text;
  }
  void TearDown() override {
    if (geteuid() != user_) {
      ASSERT_EQ(seteuid(user_), 0);
    }
    if (xdg_runtime_dir_.has_value()) {
      setenv("XDG_RUNTIME_DIR", xdg_runtime_dir_->c_str(), 1);
    } else {
      unsetenv("XDG_RUNTIME_DIR");
    }
  }

  void BecomeOrdinaryUser() const {
    constexpr uid_t kNobody = 65534;
    if (user_ == 0) {
      ASSERT_EQ(seteuid(kNobody), 0);
    }
  }

 private:
  const uid_t user_ = geteuid();
  std::optional<std::string> xdg_runtime_dir_;
};

TEST_F(DefaultRuntimeDirTest, OfRootIsTheSystemsWhateverItsEnvironmentSays) {
  if (geteuid() != 0) GTEST_SKIP() << "only root is root";
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(DefaultRuntimeDir().value_or(""), "/run/heapbroker");
  setenv("XDG_RUNTIME_DIR", "/run/user/0", 1);
  EXPECT_EQ(DefaultRuntimeDir().value_or(""), "/run/heapbroker");
}

TEST_F(DefaultRuntimeDirTest, OfOthersIsInTheirOwnRuntimeDirectory) {
  BecomeOrdinaryUser();
  setenv("XDG_RUNTIME_DIR", "/run/user/65534", 1);
  EXPECT_EQ(DefaultRuntimeDir().value_or(""), "/run/user/65534/heapbroker");
}

TEST_F(DefaultRuntimeDirTest, OfOthersWithoutOneMustBeNamed) {
  BecomeOrdinaryUser();
  unsetenv("XDG_RUNTIME_DIR");
  EXPECT_THAT(DefaultRuntimeDir(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "XDG_RUNTIME_DIR"));
  setenv("XDG_RUNTIME_DIR", "", 1);
  EXPECT_THAT(DefaultRuntimeDir(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "XDG_RUNTIME_DIR"));
}

}  // namespace
}  // namespace heapbroker
