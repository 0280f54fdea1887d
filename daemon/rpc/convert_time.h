// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Times as messages have them.
#ifndef DAEMON_RPC_CONVERT_TIME_H_
#define DAEMON_RPC_CONVERT_TIME_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace heapbroker {

// At least zero.
//   INVALID_ARGUMENT  it is negative, or no google.protobuf.Duration; begins with
//                     `field`
absl::StatusOr<absl::Duration> DurationOf(const google::protobuf::Duration& message,
                                          absl::string_view field);

google::protobuf::Duration DurationMessage(absl::Duration duration);
google::protobuf::Timestamp TimestampMessage(absl::Time time);

}  // namespace heapbroker
#endif  // DAEMON_RPC_CONVERT_TIME_H_
