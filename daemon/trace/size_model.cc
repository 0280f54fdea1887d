// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/size_model.h"

#include <algorithm>
#include <optional>

namespace heapbroker {
namespace {

// A few sizes may have more in common by chance than the driver's alignment.
constexpr uint64_t kLargestAlignment = uint64_t{64} << 10;

}  // namespace

void SizeModel::Learn(const BlockClass& block_class, Bytes size, Bytes required) {
  seen_[{block_class, size}] = required;
  required_bits_ |= required.count();
}

Bytes SizeModel::Required(const BlockClass& block_class, Bytes size) const {
  const auto found = seen_.find({block_class, size});
  if (found != seen_.end()) return std::max(size, found->second);
  const uint64_t lowest_bit = required_bits_ & (~required_bits_ + 1);
  const Bytes alignment(std::clamp<uint64_t>(lowest_bit, 1, kLargestAlignment));
  const auto aligned = [alignment](Bytes bytes) {
    return AlignUp(bytes, alignment).value_or(Bytes::Max());
  };
  // What even the least padded one had on top.
  Bytes addition = seen_.empty() ? Bytes() : Bytes::Max();
  for (const auto& [asked, needed] : seen_) {
    const Bytes without = aligned(asked.second);
    addition = std::min(addition, needed > without ? needed - without : Bytes());
  }
  return CheckedAdd(aligned(size), addition).value_or(Bytes::Max());
}

void TimeModel::LearnAllocations(uint64_t allocations, Bytes bytes, absl::Duration took) {
  if (allocations == 0 || took <= absl::ZeroDuration()) return;
  const auto n = static_cast<double>(allocations);
  const auto b = static_cast<double>(bytes.count());
  const double t = absl::ToDoubleSeconds(took);
  nn_ += n * n;
  nb_ += n * b;
  bb_ += b * b;
  nt_ += n * t;
  bt_ += b * t;
  ++jobs_;
}

void TimeModel::LearnFree(absl::Duration took) {
  free_seconds_ += absl::ToDoubleSeconds(took);
  ++frees_;
}

absl::Duration TimeModel::For(uint64_t blocks, double bytes) const {
  if (jobs_ == 0) return absl::ZeroDuration();
  const double determinant = nn_ * bb_ - nb_ * nb_;
  double each = nt_ / nn_;
  double byte = 0;
  // Where all allocations have one size, the two cannot be told apart.
  if (determinant > 1e-9 * nn_ * bb_) {
    each = (nt_ * bb_ - bt_ * nb_) / determinant;
    byte = (bt_ * nn_ - nt_ * nb_) / determinant;
    if (byte < 0) {
      byte = 0;
      each = nt_ / nn_;
    } else if (each < 0) {
      each = 0;
      byte = bt_ / bb_;
    }
  }
  const double free = frees_ > 0 ? free_seconds_ / static_cast<double>(frees_) : 0;
  return absl::Seconds(static_cast<double>(blocks) * (each + free) + bytes * byte);
}

}  // namespace heapbroker
