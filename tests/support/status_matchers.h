// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Matchers for absl::Status and StatusOr, which this abseil does not bring.
#ifndef TESTS_SUPPORT_STATUS_MATCHERS_H_
#define TESTS_SUPPORT_STATUS_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, "is OK") {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

// The code, and a part of the message that a person needs.
MATCHER_P2(StatusIs, code, part,
           "is " + absl::StatusCodeToString(code) + " with \"" + std::string(part) + "\"") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code &&
         std::string(status.message()).find(std::string(part)) != std::string::npos;
}

// ASSERT_OK_AND_ASSIGN(auto value, Fallible());
#define HB_TEST_CONCAT_INNER(a, b) a##b
#define HB_TEST_CONCAT(a, b) HB_TEST_CONCAT_INNER(a, b)
#define ASSERT_OK_AND_ASSIGN(declaration, expression) \
  ASSERT_OK_AND_ASSIGN_INNER(HB_TEST_CONCAT(hb_test_or_, __LINE__), declaration, expression)
#define ASSERT_OK_AND_ASSIGN_INNER(holder, declaration, expression) \
  auto holder = (expression);                                       \
  ASSERT_THAT(holder, ::heapbroker::IsOk());                        \
  declaration = *std::move(holder)

}  // namespace heapbroker
#endif  // TESTS_SUPPORT_STATUS_MATCHERS_H_
