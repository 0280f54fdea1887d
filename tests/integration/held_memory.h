// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A lease or a segment in the client program, imported and with known contents.
#ifndef TESTS_INTEGRATION_HELD_MEMORY_H_
#define TESTS_INTEGRATION_HELD_MEMORY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "heapbroker/client.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// What the program writes at `offset` for a given seed; differs between
// neighbours, between blocks and between seeds.
uint8_t PatternByte(uint64_t seed, uint64_t offset);

// Offsets count through all blocks, as if they were one. Not thread-safe.
class HeldMemory {
 public:
  HeldMemory() = default;  // Holds nothing.
  explicit HeldMemory(Lease lease) : lease_(std::move(lease)) {}
  explicit HeldMemory(Segment segment) : segment_(std::move(segment)) {}
  HeldMemory(HeldMemory&&) = default;
  HeldMemory& operator=(HeldMemory&&) = default;

  std::vector<std::shared_ptr<const MemoryBlock>> Blocks() const;
  Bytes Size() const;
  // "blocks=7,8 bytes=4096 allocated=65536 writer=0", with the sums over all
  // blocks.
  std::string Describe() const;

  // Imports all blocks and acquires them for the importer's device. Does nothing
  // when that is done already.
  absl::Status Import(VulkanImporter& importer);

  // All three need Import, and memory that the host can map.
  absl::Status Fill(Bytes offset, Bytes size, uint64_t seed);
  //   DATA_LOSS  a byte differs; the message tells where
  absl::Status CheckPattern(Bytes offset, Bytes size, uint64_t seed) const;
  // Every byte of the allocations, also behind what was asked for.
  //   DATA_LOSS  one is not zero
  absl::Status CheckZeros() const;

  // The device copies all of `source`, which must have one block as this has.
  absl::Status CopyFrom(const HeldMemory& source, VulkanImporter& importer);

  // Gives up the import, the device's ownership first. Whatever `importer` says,
  // nothing is imported afterwards.
  absl::Status Unimport(VulkanImporter& importer);

  // The checksum is that of the contents, which all are read for it.
  absl::Status Seal(VulkanImporter& importer);
  // Seals with a checksum of zeros: for contents too large to be read.
  absl::Status SealUnread();

  // Gives the memory back; to be called after Unimport.
  absl::Status GiveBack();

  const Segment& segment() const { return segment_; }

 private:
  // Calls `visit(host memory, offset, size)` for each block's part of a range.
  absl::Status ForEachPart(
      Bytes offset, Bytes size,
      absl::FunctionRef<absl::Status(uint8_t*, uint64_t, uint64_t)> visit) const;

  Lease lease_;
  Segment segment_;
  std::vector<DeviceBuffer> buffers_;  // Go before what they are imported from.
};

}  // namespace heapbroker
#endif  // TESTS_INTEGRATION_HELD_MEMORY_H_
