// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Identities as types: a block's id cannot be passed where a session's is meant.
#ifndef COMMON_BASE_IDS_H_
#define COMMON_BASE_IDS_H_

#include <compare>
#include <cstdint>
#include <ostream>

namespace heapbroker {

template <typename Tag>
class Id {
 public:
  constexpr Id() = default;  // Names nothing.
  constexpr explicit Id(uint64_t value) : value_(value) {}
  constexpr uint64_t value() const { return value_; }

  friend constexpr auto operator<=>(Id, Id) = default;
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << id.value_; }
  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value_);
  }

 private:
  uint64_t value_ = 0;
};

// All of these are counted up and never used again while a daemon lives.
using SessionId = Id<struct SessionTag>;
// These two tell their device, too: see NumberOnDevice.
using BlockId = Id<struct BlockTag>;
using SegmentId = Id<struct SegmentTag>;
// One request that an edge waits for; the edge chooses it.
using CallId = Id<struct CallTag>;
// One Allocate of a session; the client chooses it. Names nothing: no repeating.
using RequestId = Id<struct RequestTag>;
// What the device calls one of its allocations; the device chooses it.
using DeviceAllocationId = Id<struct DeviceAllocationTag>;

// Devices of one daemon. An id of something on a device is its number there times
// this, plus the device's index, so that a request that names it need not be
// searched for on every device.
inline constexpr uint64_t kMaxDevices = 64;
constexpr uint64_t NumberOnDevice(uint64_t number, uint32_t device_index) {
  return number * kMaxDevices + device_index;
}
template <typename Tag>
constexpr uint32_t DeviceIndexOf(Id<Tag> id) {
  return static_cast<uint32_t>(id.value() % kMaxDevices);
}

// Who trusts whom. Today a uid; 0 is root, so this has no "nothing" value.
class TenantId {
 public:
  constexpr explicit TenantId(uint32_t uid) : uid_(uid) {}
  constexpr uint32_t uid() const { return uid_; }
  friend constexpr auto operator<=>(TenantId, TenantId) = default;
  friend std::ostream& operator<<(std::ostream& out, TenantId id) {
    return out << "uid " << id.uid_;
  }

 private:
  uint32_t uid_;
};

}  // namespace heapbroker
#endif  // COMMON_BASE_IDS_H_
