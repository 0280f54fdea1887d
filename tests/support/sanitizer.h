// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_SUPPORT_SANITIZER_H_
#define TESTS_SUPPORT_SANITIZER_H_

#include "absl/time/time.h"

namespace heapbroker {

// Whether this was built for the address or the thread sanitizer, which are slow and
// need much of what the system has themselves.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEAPBROKER_TEST_HAS_SANITIZER 1
#endif
#endif
#ifdef HEAPBROKER_TEST_HAS_SANITIZER
inline constexpr bool kHasSanitizer = true;
#else
inline constexpr bool kHasSanitizer = false;
#endif

// How long a process may take to end that was told to, or killed: a sanitizer's has so
// much memory mapped that taking it down alone was seen to take ten seconds.
inline constexpr absl::Duration kEndTimeout = absl::Seconds(kHasSanitizer ? 60 : 10);

}  // namespace heapbroker
#endif  // TESTS_SUPPORT_SANITIZER_H_
