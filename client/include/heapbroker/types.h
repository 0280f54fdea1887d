// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a client sees of devices, memory and blocks: plain values.
#ifndef HEAPBROKER_TYPES_H_
#define HEAPBROKER_TYPES_H_

#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "heapbroker/units.h"

namespace heapbroker {

// Bytes of a client's or a segment's name, at most.
inline constexpr size_t kMaxClientNameBytes = 128;
// The largest alignment of a block's start that can be asked for.
inline constexpr Bytes kMaxBlockAlignment = Bytes(4096);
// Version of the session protocol that this library speaks. A daemon of another
// major version refuses it, and the other way round.
inline constexpr uint32_t kProtocolMajor = 1;
inline constexpr uint32_t kProtocolMinor = 0;

// What the caller wants to do with the memory. The daemon chooses the Vulkan
// memory type; ImportFacts say which one it was.
enum class MemoryKind {
  // Fastest for the device. The host may not be able to map it.
  kDeviceLocal,
  // The host can map it and writes are coherent: uploads.
  kHostVisible,
  // The host can map it and reads are cached where the device has that: downloads.
  kHostCached,
  // Device-local memory that the host can map. Refused where the device has none.
  kDeviceLocalHostVisible,
};

// Properties that the memory must have, as the daemon's --pool names them:
// "device_local", "host_visible|host_cached", "device_local;mapping".
struct HeapKey {
  std::string text{};
};

// Exactly this one of BrokerDevice::memory_types.
struct MemoryTypeIndex {
  uint32_t index = 0;
};

// Which memory: for a purpose, with properties, or of one Vulkan memory type.
using MemoryChoice = std::variant<MemoryKind, HeapKey, MemoryTypeIndex>;

// How a block travels between processes.
enum class HandleType : uint8_t {
  // VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT.
  kOpaqueFd,
  // VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT.
  kDmaBuf,
};

// Which of a user's waiting requests goes first; between users they take turns,
// whatever the priority.
enum class Priority { kLow, kNormal, kHigh };

// All that an import needs to know, in Vulkan or in another interface. An
// opaque descriptor must be imported with exactly `allocation_size` and
// `memory_type_index`, on a device whose device and driver UUIDs are those of
// the broker's device: some drivers accept anything else without a word and
// fail, or corrupt memory, much later.
struct ImportFacts {
  uint64_t block_id = 0;               // Never reused while the daemon lives.
  Bytes size{};                        // As asked for; a segment's block: its part of the segment.
  Bytes allocation_size{};             // VkMemoryAllocateInfo.allocationSize; at least `size`.
  uint32_t memory_type_index = 0;      // VkMemoryAllocateInfo.memoryTypeIndex.
  uint32_t memory_property_flags = 0;  // VkMemoryPropertyFlags of that type.
  HandleType handle_type = HandleType::kOpaqueFd;
  uint32_t device_index = 0;  // Into Client::devices().
  // Allocated with VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT; an import must do the same.
  bool device_address = false;
  // Allocated for one buffer that covers it (VkMemoryDedicatedAllocateInfo); an
  // import of an opaque descriptor must do the same.
  bool dedicated = false;
};

using Uuid = std::array<uint8_t, 16>;

struct BrokerHeap {
  Bytes size{};  // As the driver reports it, which is no limit.
  bool device_local = false;

  friend bool operator==(const BrokerHeap&, const BrokerHeap&) = default;
};

struct BrokerMemoryType {
  uint32_t heap_index = 0;      // Into BrokerDevice::heaps.
  uint32_t property_flags = 0;  // VkMemoryPropertyFlags.
  bool exportable = false;      // Blocks of this type can be leased.
  // How: at least one where `exportable`. Those that this library does not know
  // are left out.
  std::vector<HandleType> handle_types{};

  friend bool operator==(const BrokerMemoryType&, const BrokerMemoryType&) = default;
};

// One device that the daemon has opened.
struct BrokerDevice {
  uint32_t index = 0;         // Position in Client::devices().
  std::string name{};         // For people.
  std::string driver_info{};  // For people.
  // A software driver, which runs on the CPU. It is no boundary: a process that
  // maps its memory can crash the daemon.
  bool software = false;
  // Both must be equal on the device that imports (VkPhysicalDeviceIDProperties).
  Uuid device_uuid{};
  Uuid driver_uuid{};
  std::vector<BrokerHeap> heaps{};
  std::vector<BrokerMemoryType> memory_types{};
  Bytes max_allocation_size{};  // The largest block that one request can get.
  // AllocationRequest::device_address can be asked for.
  bool device_addresses = false;
  // Blocks of these handle types are dedicated, asked for or not.
  std::vector<HandleType> dedicated_only{};

  friend bool operator==(const BrokerDevice&, const BrokerDevice&) = default;
};

// XXH3-128 of a segment's bytes, 0 to size - 1: see checksum.h.
struct Checksum {
  uint64_t high = 0;
  uint64_t low = 0;
  friend bool operator==(const Checksum&, const Checksum&) = default;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_TYPES_H_
