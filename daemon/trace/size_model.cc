// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/size_model.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace heapbroker {
namespace {

// No driver is known to align to more.
constexpr uint64_t kLargestAlignment = uint64_t{2} << 20;

Bytes Aligned(Bytes size, Bytes alignment) {
  return AlignUp(size, alignment).value_or(Bytes::Max());
}

Bytes Beyond(Bytes size, Bytes part) { return size > part ? size - part : Bytes(); }

}  // namespace

void SizeModel::Learn(const BlockClass& block_class, Bytes size, Bytes required) {
  const auto [at, is_new] = seen_.emplace(std::make_pair(block_class, size), required);
  if (!is_new && at->second == required) return;
  at->second = required;
  padding_.reset();
}

SizeModel::Padding SizeModel::Explain() const {
  // Where nothing explains all of it: no alignment, and what even the least padded
  // size had on top.
  Padding least{Bytes(1), seen_.empty() ? Bytes() : Bytes::Max()};
  for (const auto& [asked, required] : seen_) {
    least.addition = std::min(least.addition, Beyond(required, asked.second));
  }
  for (uint64_t n = 1; n <= kLargestAlignment; n *= 2) {
    std::optional<Bytes> addition;
    bool explains = true;
    for (const auto& [asked, required] : seen_) {
      const Bytes aligned = Aligned(asked.second, Bytes(n));
      const Bytes rest = Beyond(required, aligned);
      explains = aligned <= required && rest == addition.value_or(rest);
      if (!explains) break;
      addition = rest;
    }
    if (explains) return {Bytes(n), addition.value_or(Bytes())};
  }
  return least;
}

Bytes SizeModel::Required(const BlockClass& block_class, Bytes size) const {
  const auto found = seen_.find({block_class, size});
  if (found != seen_.end()) return std::max(size, found->second);
  if (!padding_) padding_ = Explain();
  return CheckedAdd(Aligned(size, padding_->alignment), padding_->addition).value_or(Bytes::Max());
}

void TimeModel::LearnAllocations(uint64_t allocations, double bytes, absl::Duration took) {
  if (allocations == 0 || took <= absl::ZeroDuration()) return;
  const auto n = static_cast<double>(allocations);
  const double b = bytes;
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
