// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/rule_parser.h"

#include <string>
#include <variant>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker::faults {
namespace {

using absl::StatusCode;

FaultRule Parsed(absl::string_view text) {
  absl::StatusOr<FaultRule> rule = ParseFaultRule(text);
  EXPECT_THAT(rule, IsOk()) << std::string(text);
  return rule.value_or(FaultRule{});
}

TEST(RuleParserTest, ReadsOneCallARangeAnOpenRangeAndEveryCall) {
  const Ordinals third = Parsed("vkAllocateMemory:3:error(-2)").when;
  EXPECT_EQ(third.first, 3u);
  EXPECT_EQ(third.last, 3u);
  const Ordinals range = Parsed("vkAllocateMemory:3-5:error(-2)").when;
  EXPECT_EQ(range.first, 3u);
  EXPECT_EQ(range.last, 5u);
  const Ordinals open = Parsed("vkAllocateMemory:3-:error(-2)").when;
  EXPECT_EQ(open.first, 3u);
  EXPECT_EQ(open.last, UINT64_MAX);
  EXPECT_TRUE(Parsed("vkAllocateMemory:*:error(-2)").when.Contains(1));
  EXPECT_TRUE(Parsed("vkAllocateMemory:*:error(-2)").when.Contains(UINT64_MAX));
}

TEST(RuleParserTest, ReadsEachAction) {
  EXPECT_EQ(std::get<Fail>(Parsed("vkMapMemory:1:error(-2)").action).result,
            VK_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(std::get<Fail>(Parsed("vkMapMemory:1:error(VK_ERROR_DEVICE_LOST)").action).result,
            VK_ERROR_DEVICE_LOST);
  EXPECT_EQ(std::get<Delay>(Parsed("vkFreeMemory:*:delay(20s)").action).duration,
            absl::Seconds(20));
  EXPECT_TRUE(std::holds_alternative<Hang>(Parsed("vkAllocateMemory:1:hang").action));
  const auto close = std::get<FailImport>(Parsed("import:*:fail-and-close").action);
  EXPECT_TRUE(close.close);
  EXPECT_EQ(close.result, VK_ERROR_INVALID_EXTERNAL_HANDLE);
  const auto keep =
      std::get<FailImport>(Parsed("import:*:fail-and-keep(VK_ERROR_OUT_OF_HOST_MEMORY)").action);
  EXPECT_FALSE(keep.close);
  EXPECT_EQ(keep.result, VK_ERROR_OUT_OF_HOST_MEMORY);
}

TEST(RuleParserTest, KnowsEveryFunctionByItsName) {
  for (size_t i = 0; i < kFunctionCount; ++i) {
    const auto function = static_cast<Function>(i);
    EXPECT_EQ(Parsed(absl::StrCat(FunctionName(function), ":1:hang")).function, function);
  }
}

TEST(RuleParserTest, SaysWhereARuleIsWrongAndWhatIsAllowed) {
  const std::pair<const char*, const char*> kMistakes[] = {
      {"vkAllocateMemory", "position 16: a rule is FUNCTION:WHEN:ACTION"},
      {"vkAllocateMemory:3", "position 18: a rule is FUNCTION:WHEN:ACTION"},
      {"vkAllocate:3:hang", "position 0: \"vkAllocate\" is no function"},
      {"vkAllocateMemory:0:hang", "position 17: \"0\" names no calls"},
      {"vkAllocateMemory:5-3:hang", "position 17: \"5-3\" names no calls"},
      {"vkAllocateMemory::hang", "position 17: \"\" names no calls"},
      {"vkAllocateMemory:-3:hang", "position 17: \"-3\" names no calls"},
      {"vkAllocateMemory:3:explode", "position 19: \"explode\" is no action"},
      {"vkAllocateMemory:3:hang(1)", "position 19: \"hang(1)\" is no action"},
      {"vkAllocateMemory:3:error(-2", "position 27: a \")\" is missing"},
      {"vkAllocateMemory:3:error(0)", "position 19: 0 is no error"},
      {"vkAllocateMemory:3:error()", "position 19: \"\" is no error of Vulkan; allowed are"},
      {"vkAllocateMemory:3:delay(soon)", "position 19: \"soon\" is no duration"},
      {"vkAllocateMemory:3:delay(-1s)", "position 19: \"-1s\" is no duration"},
      {"vkFreeMemory:3:error(-2)", "position 15: vkFreeMemory returns nothing"},
      {"vkAllocateMemory:3:fail-and-close", "position 19: fail-and-close is for import"},
  };
  for (const auto& [text, error] : kMistakes) {
    EXPECT_THAT(ParseFaultRule(text), StatusIs(StatusCode::kInvalidArgument, error)) << text;
  }
}

}  // namespace
}  // namespace heapbroker::faults
