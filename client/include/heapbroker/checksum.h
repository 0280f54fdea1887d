// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The checksum of a segment's contents.
#ifndef HEAPBROKER_CHECKSUM_H_
#define HEAPBROKER_CHECKSUM_H_

#include <memory>

#include "heapbroker/export.h"
#include "heapbroker/types.h"

namespace heapbroker {

// XXH3-128 (seed 0), piece by piece: the segment's blocks in their order, each
// with facts().size bytes, padding inside the segment included. Fast (memory
// speed) and not cryptographic: it finds mistakes, not attacks.
//
// Not thread-safe.
class HEAPBROKER_EXPORT Checksummer {
 public:
  Checksummer();
  ~Checksummer();
  Checksummer(const Checksummer&) = delete;
  Checksummer& operator=(const Checksummer&) = delete;

  // `data` may be null where `size` is zero.
  void Add(const void* data, Bytes size);

  // Of everything added so far; more may be added afterwards.
  Checksum Finish() const;

 private:
  struct HEAPBROKER_LOCAL State;
  std::unique_ptr<State> state_;
};

// Of one piece of host memory.
HEAPBROKER_EXPORT Checksum ChecksumOf(const void* data, Bytes size);

}  // namespace heapbroker
#endif  // HEAPBROKER_CHECKSUM_H_
