// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/ranges.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {

absl::Status CheckRange(absl::string_view what, Bytes offset, Bytes size, Bytes total) {
  const std::optional<Bytes> end = CheckedAdd(offset, size);
  if (!end) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": offset ", offset.count(), " plus size ",
                                                   size.count(), " passes 2^64 - 1"));
  }
  if (*end > total) {
    return absl::OutOfRangeError(absl::StrCat(what, ": offset ", offset.count(), " plus size ",
                                              size.count(), " is past the end at ", total.count()));
  }
  return absl::OkStatus();
}

absl::StatusOr<BlockRun> BlockRun::Of(const std::vector<Bytes>& sizes) {
  BlockRun run;
  for (const Bytes size : sizes) {
    const std::optional<Bytes> end = CheckedAdd(run.size_, size);
    if (!end) return absl::InvalidArgumentError("the blocks' sizes add up to more than 2^64 - 1");
    run.starts_.push_back(run.size_);
    run.size_ = *end;
  }
  return run;
}

size_t BlockRun::BlockAt(Bytes offset) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
  return static_cast<size_t>(after - starts_.begin()) - 1;
}

Bytes BlockRun::EndOf(size_t block) const {
  return block + 1 < starts_.size() ? starts_[block + 1] : size_;
}

absl::StatusOr<BlockRun::Piece> BlockRun::Locate(Bytes offset, Bytes size) const {
  HB_RETURN_IF_ERROR(CheckRange("range", offset, size, size_));
  if (starts_.empty()) return Piece{};
  const size_t block = BlockAt(offset);
  if (offset + size > EndOf(block)) {
    return absl::InvalidArgumentError(
        absl::StrCat("range: offset ", offset.count(), " plus size ", size.count(),
                     " crosses the start of a block at ", EndOf(block).count(),
                     "; place data so that no piece crosses one of block_starts()"));
  }
  return Piece{.block = block, .offset = offset - starts_[block], .size = size};
}

absl::StatusOr<std::vector<BlockRun::Piece>> BlockRun::Split(Bytes offset, Bytes size) const {
  HB_RETURN_IF_ERROR(CheckRange("range", offset, size, size_));
  std::vector<Piece> pieces;
  while (size > Bytes(0)) {
    const size_t block = BlockAt(offset);
    const Bytes part = std::min(size, EndOf(block) - offset);
    pieces.push_back(Piece{.block = block, .offset = offset - starts_[block], .size = part});
    offset += part;
    size -= part;
  }
  return pieces;
}

}  // namespace heapbroker
