// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Stands for a client's names where they must not be told.
#ifndef DAEMON_TRACE_NAME_HASH_H_
#define DAEMON_TRACE_NAME_HASH_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace heapbroker {

using NameHashKey = std::array<uint64_t, 2>;

// A new key from the system's source of randomness.
NameHashKey RandomNameHashKey();

// SipHash-2-4: whoever does not have the key cannot find out whether a name that
// he guesses is the one. Two names of one recording have the same hash by a chance
// of one to 2^64.
uint64_t HashName(const NameHashKey& key, absl::string_view name);

}  // namespace heapbroker
#endif  // DAEMON_TRACE_NAME_HASH_H_
