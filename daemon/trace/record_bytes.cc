// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/record_bytes.h"

#include <cstdint>

namespace heapbroker {

void AppendRecord(const v1::TraceRecord& record, std::string& bytes) {
  const std::string body = record.SerializeAsString();
  uint64_t left = body.size();
  while (left >= 0x80) {
    bytes.push_back(static_cast<char>(left | 0x80));
    left >>= 7;
  }
  bytes.push_back(static_cast<char>(left));
  bytes.append(body);
}

}  // namespace heapbroker
