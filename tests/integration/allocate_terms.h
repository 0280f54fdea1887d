// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How a test tells client_program what to ask for.
#ifndef TESTS_INTEGRATION_ALLOCATE_TERMS_H_
#define TESTS_INTEGRATION_ALLOCATE_TERMS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "heapbroker/client.h"

namespace heapbroker {

struct AllocateTerms {
  AllocationRequest request{};
  AllocateOptions options{};

  // Words in any order; INVALID_ARGUMENT for any other:
  //   zeroed  dedicated  address  transient
  //   key=HEAP_KEY  type=INDEX  handle=opaque_fd|dma_buf
  //   device=INDEX  priority=low|normal|high  wait=MILLISECONDS  timeout=MILLISECONDS  for-ever
  absl::Status Read(absl::Span<const std::string> words);

 private:
  absl::Status ReadWord(const std::string& word);
};

// The same status, with " refused=LIMIT largest=FIGURE never=0|1" behind the
// message where it has a MemoryRefusal; LIMIT is the number of the enumerator.
absl::Status WithRefusalText(const absl::Status& status);

}  // namespace heapbroker
#endif  // TESTS_INTEGRATION_ALLOCATE_TERMS_H_
