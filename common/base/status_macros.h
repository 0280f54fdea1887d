// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Passing errors up. The statuses themselves say what was wrong, what is
// allowed and what to do next; see each function that makes one.
#ifndef COMMON_BASE_STATUS_MACROS_H_
#define COMMON_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define HB_RETURN_IF_ERROR(expression)                                            \
  do {                                                                            \
    if (absl::Status hb_status = (expression); !hb_status.ok()) return hb_status; \
  } while (false)

#define HB_CONCAT_INNER(a, b) a##b
#define HB_CONCAT(a, b) HB_CONCAT_INNER(a, b)

// HB_ASSIGN_OR_RETURN(auto value, Fallible());
// A declaration cannot stand in parentheses, which clang-tidy would like.
// NOLINTBEGIN(bugprone-macro-parentheses)
#define HB_ASSIGN_OR_RETURN(declaration, expression) \
  HB_ASSIGN_OR_RETURN_INNER(HB_CONCAT(hb_or_, __LINE__), declaration, expression)
#define HB_ASSIGN_OR_RETURN_INNER(holder, declaration, expression) \
  auto holder = (expression);                                      \
  if (!holder.ok()) return std::move(holder).status();             \
  declaration = *std::move(holder)
// NOLINTEND(bugprone-macro-parentheses)

#endif  // COMMON_BASE_STATUS_MACROS_H_
