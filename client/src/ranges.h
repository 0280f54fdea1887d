// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Arithmetic of ranges in memory, checked.
#ifndef CLIENT_SRC_RANGES_H_
#define CLIENT_SRC_RANGES_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "heapbroker/units.h"

namespace heapbroker {

// OK where [offset, offset + size) lies in [0, total]. Messages begin with `what`.
//   INVALID_ARGUMENT  offset + size passes 2^64 - 1
//   OUT_OF_RANGE      past the end
absl::Status CheckRange(absl::string_view what, Bytes offset, Bytes size, Bytes total);

// Several blocks, one after the other, as one run of bytes. Immutable.
class BlockRun {
 public:
  struct Piece {
    size_t block = 0;
    Bytes offset;  // In the block.
    Bytes size;
  };

  // Empty where the sizes add up to more than 2^64 - 1.
  static absl::StatusOr<BlockRun> Of(const std::vector<Bytes>& sizes);

  Bytes size() const { return size_; }
  const std::vector<Bytes>& starts() const { return starts_; }

  // The block that holds all of the range. Errors of CheckRange, and
  //   INVALID_ARGUMENT  the range crosses the start of a block; the message says where
  absl::StatusOr<Piece> Locate(Bytes offset, Bytes size) const;

  // The range cut at the starts of blocks; none for an empty range. Errors of
  // CheckRange.
  absl::StatusOr<std::vector<Piece>> Split(Bytes offset, Bytes size) const;

 private:
  BlockRun() = default;
  size_t BlockAt(Bytes offset) const;
  Bytes EndOf(size_t block) const;

  std::vector<Bytes> starts_;
  Bytes size_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_RANGES_H_
