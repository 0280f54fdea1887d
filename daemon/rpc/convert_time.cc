// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert_time.h"

#include <time.h>

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace heapbroker {
namespace {

// The range of google.protobuf.Duration: ten thousand years.
constexpr int64_t kMaxSeconds = 315'576'000'000;
constexpr int32_t kMaxNanos = 999'999'999;

}  // namespace

absl::StatusOr<absl::Duration> DurationOf(const google::protobuf::Duration& message,
                                          absl::string_view field) {
  if (message.seconds() < 0 || message.seconds() > kMaxSeconds || message.nanos() < 0 ||
      message.nanos() > kMaxNanos) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": is ", message.seconds(), " s and ",
                                                   message.nanos(), " ns; allowed are 0 to ",
                                                   kMaxSeconds, " s and 0 to ", kMaxNanos, " ns"));
  }
  return absl::Seconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

google::protobuf::Duration DurationMessage(absl::Duration duration) {
  const timespec value = absl::ToTimespec(duration);
  google::protobuf::Duration message;
  message.set_seconds(value.tv_sec);
  message.set_nanos(static_cast<int32_t>(value.tv_nsec));
  return message;
}

google::protobuf::Timestamp TimestampMessage(absl::Time time) {
  const timespec value = absl::ToTimespec(time);
  google::protobuf::Timestamp message;
  message.set_seconds(value.tv_sec);
  message.set_nanos(static_cast<int32_t>(value.tv_nsec));
  return message;
}

}  // namespace heapbroker
