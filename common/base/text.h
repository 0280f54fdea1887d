// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Text that peers send: what a name may be, and how to show one safely.
#ifndef COMMON_BASE_TEXT_H_
#define COMMON_BASE_TEXT_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace heapbroker {

inline constexpr size_t kMaxNameBytes = 128;

// Position of the first byte that is not part of valid UTF-8 (RFC 3629: no
// overlong forms, no surrogates, nothing past U+10FFFF), if there is one.
std::optional<size_t> FindInvalidUtf8(absl::string_view text);

// Names of clients and segments: valid UTF-8, 1 to kMaxNameBytes bytes, no
// control characters (they would let a peer forge lines in logs and tables).
// The error is INVALID_ARGUMENT and begins with `field`.
absl::Status CheckName(absl::string_view field, absl::string_view name);

// `text` with everything escaped that is not printable ASCII or valid UTF-8, cut
// at `limit` bytes: fit for a log line whatever a peer sent.
std::string Printable(absl::string_view text, size_t limit = kMaxNameBytes);

// INVALID_ARGUMENT for something that a person wrote: quotes `text` and says
// where in it, in bytes from 0, `at` begins. `at` must point into `text`.
absl::Status InvalidTextError(absl::string_view text, absl::string_view at, absl::string_view why);

}  // namespace heapbroker
#endif  // COMMON_BASE_TEXT_H_
