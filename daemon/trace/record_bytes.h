// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// How records stand in a recording.
#ifndef DAEMON_TRACE_RECORD_BYTES_H_
#define DAEMON_TRACE_RECORD_BYTES_H_

#include <string>

#include "heapbroker/v1/trace.pb.h"

namespace heapbroker {

// Adds the record, behind its length, to `bytes`.
void AppendRecord(const v1::TraceRecord& record, std::string& bytes);

}  // namespace heapbroker
#endif  // DAEMON_TRACE_RECORD_BYTES_H_
