// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/integration/allocate_terms.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "heapbroker/memory_refusal.h"

namespace heapbroker {

absl::Status AllocateTerms::Read(absl::Span<const std::string> words) {
  for (const std::string& word : words) HB_RETURN_IF_ERROR(ReadWord(word));
  return absl::OkStatus();
}

absl::Status AllocateTerms::ReadWord(const std::string& word) {
  const std::pair<std::string, std::string> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
  const auto& [key, value] = pair;
  uint32_t number = 0;
  const bool is_number = absl::SimpleAtoi(value, &number);
  if (word == "zeroed") {
    request.zeroed = true;
  } else if (word == "dedicated") {
    request.dedicated = true;
  } else if (word == "address") {
    request.device_address = true;
  } else if (word == "transient") {
    request.transient = true;
  } else if (key == "key") {
    request.memory = HeapKey{value};
  } else if (key == "type" && is_number) {
    request.memory = MemoryTypeIndex{number};
  } else if (word == "handle=opaque_fd" || word == "handle=dma_buf") {
    request.handle_type = value == "dma_buf" ? HandleType::kDmaBuf : HandleType::kOpaqueFd;
  } else if (key == "device" && is_number) {
    options.device_index = number;
  } else if (word == "priority=low") {
    options.priority = Priority::kLow;
  } else if (word == "priority=normal") {
    options.priority = Priority::kNormal;
  } else if (word == "priority=high") {
    options.priority = Priority::kHigh;
  } else if (word == "for-ever") {
    options.max_wait = absl::InfiniteDuration();
    options.timeout = absl::InfiniteDuration();
  } else if (key == "wait" && is_number) {
    options.max_wait = absl::Milliseconds(number);
  } else if (key == "timeout" && is_number) {
    options.timeout = absl::Milliseconds(number);
  } else {
    return absl::InvalidArgumentError(absl::StrCat("no such term: ", word));
  }
  return absl::OkStatus();
}

absl::Status WithRefusalText(const absl::Status& status) {
  const std::optional<MemoryRefusal> refusal = RefusalOf(status);
  if (!refusal) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(status.message(), " refused=", static_cast<int>(refusal->limit),
                   " largest=", refusal->largest_now, " never=", refusal->never_fits ? 1 : 0));
}

}  // namespace heapbroker
