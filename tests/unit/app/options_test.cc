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

  static std::variant<DaemonOptions, ExitNow> Parse(std::initializer_list<const char*> flags) {
    std::vector<const char*> argv = {"heapbrokerd"};
    argv.insert(argv.end(), flags);
    return ParseOptions(static_cast<int>(argv.size()), argv.data());
  }
};

TEST_F(OptionsTest, TakesFlags) {
  const auto parsed =
      Parse({"--runtime-dir", "/tmp/x", "--device", "llvmpipe", "--require-hardware", "--clear",
             "always", "--heap-budget", "1gib", "--heap-budget", "0=2gib", "--software-tenants",
             "any", "--log-level", "debug"});
  ASSERT_TRUE(std::holds_alternative<DaemonOptions>(parsed));
  const auto& options = std::get<DaemonOptions>(parsed);
  EXPECT_EQ(options.runtime_dir, "/tmp/x");
  EXPECT_EQ(options.device.text, "llvmpipe");
  EXPECT_TRUE(options.device.require_hardware);
  EXPECT_EQ(options.clear, ClearMode::kAlways);
  EXPECT_EQ(options.software_tenants, TenantRule::kAnyTenant);
  EXPECT_EQ(options.log_level, LogLevel::kDebug);
  ASSERT_EQ(options.heap_budgets.size(), 2u);
  EXPECT_EQ(options.heap_budgets[1].limit, GiB(2));
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
