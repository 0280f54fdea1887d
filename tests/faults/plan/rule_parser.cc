// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/rule_parser.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "tests/faults/plan/vulkan_names.h"

namespace heapbroker::faults {
namespace {

absl::Status ErrorAt(size_t position, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("position ", position, ": ", why));
}

absl::StatusOr<Ordinals> ParseOrdinals(absl::string_view text, size_t position) {
  if (text == "*") return Ordinals{};
  const size_t dash = text.find('-');
  const absl::string_view last = dash == absl::string_view::npos ? text : text.substr(dash + 1);
  Ordinals ordinals;
  const bool readable = absl::SimpleAtoi(text.substr(0, dash), &ordinals.first) &&
                        (last.empty() || absl::SimpleAtoi(last, &ordinals.last));
  if (readable && ordinals.first >= 1 && ordinals.first <= ordinals.last) return ordinals;
  return ErrorAt(position, absl::StrCat("\"", text,
                                        "\" names no calls; allowed are 3, 3-5, 3- and *, "
                                        "counted from 1"));
}

// What stands in the parentheses after `name`; empty where there are none.
struct Call {
  absl::string_view name;
  absl::string_view argument;
};

absl::StatusOr<Call> SplitCall(absl::string_view text, size_t position) {
  const size_t open = text.find('(');
  if (open == absl::string_view::npos) return Call{text, ""};
  if (text.back() != ')') return ErrorAt(position + text.size(), "a \")\" is missing here");
  return Call{text.substr(0, open), text.substr(open + 1, text.size() - open - 2)};
}

absl::StatusOr<FaultAction> ParseDelay(const Call& call, size_t position) {
  absl::Duration duration;
  if (absl::ParseDuration(call.argument, &duration) && duration >= absl::ZeroDuration()) {
    return Delay{duration};
  }
  return ErrorAt(position, absl::StrCat("\"", call.argument,
                                        "\" is no duration; allowed are such as 20s and 50ms"));
}

absl::StatusOr<VkResult> ParseErrorAt(absl::string_view text, size_t position) {
  absl::StatusOr<VkResult> error = ParseError(text);
  if (!error.ok()) return ErrorAt(position, error.status().message());
  return error;
}

absl::StatusOr<FaultAction> ParseFailure(const Call& call, Function function, size_t position) {
  if (!ReturnsResult(function)) {
    return ErrorAt(position, absl::StrCat(FunctionName(function),
                                          " returns nothing; allowed are delay(...) and hang"));
  }
  HB_ASSIGN_OR_RETURN(const VkResult error, ParseErrorAt(call.argument, position));
  return Fail{error};
}

absl::StatusOr<FaultAction> ParseImportFailure(const Call& call, Function function,
                                               size_t position) {
  if (function != Function::kImport) {
    return ErrorAt(position,
                   absl::StrCat(call.name, " is for import; allowed for ", FunctionName(function),
                                " are error(...), delay(...) "
                                "and hang"));
  }
  FailImport fail;
  fail.close = call.name == "fail-and-close";
  if (!call.argument.empty()) {
    HB_ASSIGN_OR_RETURN(fail.result, ParseErrorAt(call.argument, position));
  }
  return fail;
}

absl::StatusOr<FaultAction> ParseAction(absl::string_view text, Function function,
                                        size_t position) {
  HB_ASSIGN_OR_RETURN(const Call call, SplitCall(text, position));
  if (call.name == "error") return ParseFailure(call, function, position);
  if (call.name == "delay") return ParseDelay(call, position);
  if (text == "hang") return Hang{};
  if (call.name == "fail-and-close" || call.name == "fail-and-keep") {
    return ParseImportFailure(call, function, position);
  }
  return ErrorAt(position, absl::StrCat("\"", text,
                                        "\" is no action; allowed are error(CODE), delay(20s), "
                                        "hang, fail-and-close and fail-and-keep"));
}

}  // namespace

absl::StatusOr<FaultRule> ParseFaultRule(absl::string_view text) {
  const size_t first = text.find(':');
  const size_t second = first == absl::string_view::npos ? first : text.find(':', first + 1);
  if (second == absl::string_view::npos) {
    return ErrorAt(text.size(),
                   "a rule is FUNCTION:WHEN:ACTION, as in vkAllocateMemory:3:error(-2)");
  }
  const std::optional<Function> function = FindFunction(text.substr(0, first));
  if (!function) {
    return ErrorAt(
        0, absl::StrCat("\"", text.substr(0, first),
                        "\" is no function that can be broken; allowed are ", FunctionNames()));
  }
  FaultRule rule;
  rule.function = *function;
  HB_ASSIGN_OR_RETURN(rule.when,
                      ParseOrdinals(text.substr(first + 1, second - first - 1), first + 1));
  HB_ASSIGN_OR_RETURN(rule.action, ParseAction(text.substr(second + 1), *function, second + 1));
  return rule;
}

}  // namespace heapbroker::faults
