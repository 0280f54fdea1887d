// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What stands in the cells of heapbrokerctl's tables, and around them.
#ifndef CLIENT_CTL_CELLS_H_
#define CLIENT_CTL_CELLS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"
#include "heapbroker/v1/broker.pb.h"
#include "heapbroker/v1/memory.pb.h"

namespace heapbroker {

inline constexpr char kIndent[] = "  ";

std::string Number(uint64_t value);
// "64.0 KiB".
std::string Size(uint64_t bytes);
// The same, and "-" where there is no limit: 2^64 - 1.
std::string SizeLimit(uint64_t bytes);
std::string NumberLimit(uint64_t value);

// "1 session", "2 sessions".
std::string Count(uint64_t count, absl::string_view thing);

// "12 s", "3 min 12 s", "5 h 2 min", "3 d 4 h". Negative ages, from clocks that
// disagree, are "0 s".
std::string FormatAge(absl::Duration age);

// "92.3 %"; "-" where there is nothing to count.
std::string FormatRate(uint64_t part, uint64_t whole);

absl::Time ToTime(const google::protobuf::Timestamp& time);

// Printable, and "-" where it is not for our eyes.
std::string NameOrDash(const std::string& name);

// As it stands in a table: the middle of a long name gives way to an ellipsis.
std::string PoolCell(const std::string& name);

std::string HandleTypeName(v1::HandleType type);

// "device_local|host_visible": VkMemoryPropertyFlags, as --pool names them.
std::string MemoryPropertyNames(uint32_t flags);

// What it is that a limit counts or comes from: "descriptors".
std::string LimitName(v1::MemoryRefusal::Limit limit);

// "device 0: NAME, discrete GPU", and for a software device a line more that
// says what that means.
std::string DeviceHeadline(const v1::Device& device);

}  // namespace heapbroker
#endif  // CLIENT_CTL_CELLS_H_
