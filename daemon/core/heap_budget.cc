// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/heap_budget.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace heapbroker {
namespace {

// Without a wrap for any heap there will be.
Bytes PerMille(Bytes bytes, uint32_t per_mille) {
  return Bytes(bytes.count() / 1000 * per_mille + bytes.count() % 1000 * per_mille / 1000);
}

Bytes LessOrNothing(Bytes a, Bytes b) { return a > b ? a - b : Bytes(); }

}  // namespace

CheckedHeapReport CheckHeapReport(uint32_t heap, Bytes size, const HeapReport& report) {
  CheckedHeapReport checked;
  const auto complain = [&](absl::string_view what) {
    checked.complaint = absl::StrCat("the driver reports for heap ", heap, " of ",
                                     FormatBytes(size), " a budget of ", FormatBytes(report.budget),
                                     " and a usage of ", FormatBytes(report.usage), ": ", what);
  };
  if (report.budget == Bytes()) {
    complain("taken as no answer");
    return checked;
  }
  if (report.budget > size || report.usage > size) {
    complain("taken as the heap's size where they are over it");
  }
  checked.report = HeapReport{std::min(report.budget, size), std::min(report.usage, size)};
  return checked;
}

HeapBudget::HeapBudget(const HeapLimit& limit, const HeapInfo& info) : limit_(limit), info_(info) {
  // Until the driver is asked anew.
  if (info.driver_budget) driver_ = HeapReport{*info.driver_budget, Bytes()};
}

Bytes HeapBudget::now() const {
  if (!driver_ || !limit_.driver_per_mille) return limit_.bytes;
  return std::min(limit_.bytes, PerMille(driver_->budget, *limit_.driver_per_mille));
}

Bytes HeapBudget::available() const { return LessOrNothing(now(), in_use_); }

Bytes HeapBudget::UncommittedWithout(Bytes evicted) const {
  return LessOrNothing(now(), in_use_ - being_freed_ - evicted + promised_);
}

bool HeapBudget::TryTake(Bytes bytes) {
  // What is promised comes out of what is available and what is being freed.
  if (bytes > available() || bytes > uncommitted()) return false;
  in_use_ += bytes;
  peak_ = std::max(peak_, in_use_);
  return true;
}

void HeapBudget::Freed(Bytes bytes) {
  being_freed_ -= bytes;
  in_use_ -= bytes;
}

bool HeapBudget::Redeem(Bytes promised, Bytes bytes) {
  // More than was promised must not come out of what others were promised.
  if (bytes > available() || bytes - promised > uncommitted()) return false;
  promised_ -= promised;
  in_use_ += bytes;
  peak_ = std::max(peak_, in_use_);
  return true;
}

std::string HeapBudget::Update(uint32_t heap, const HeapReport& report) {
  CheckedHeapReport checked = CheckHeapReport(heap, info_.size, report);
  driver_ = checked.report;
  if (checked.complaint.empty() || complained_) return "";
  complained_ = true;  // Figures vary from call to call; once is enough.
  return checked.complaint;
}

bool HeapBudget::NoteDriverRefusal(Bytes bytes, absl::Time now) {
  // A refusal without an eviction proves nothing new.
  if (!WasRefusedLately(bytes, now)) refused_ = Refused{bytes, now + kRefusalIsRemembered};
  if (smallest_driver_refusal_ && *smallest_driver_refusal_ <= bytes) return false;
  smallest_driver_refusal_ = bytes;
  return true;
}

void HeapBudget::NoteDriverAllocation(Bytes bytes) {
  if (refused_ && bytes >= refused_->bytes) refused_ = std::nullopt;
}

bool HeapBudget::WasRefusedLately(Bytes bytes, absl::Time now) const {
  return refused_ && bytes >= refused_->bytes && now < refused_->until;
}

HeapStats HeapBudget::Stats() const {
  HeapStats stats;
  stats.info = info_;
  stats.budget = limit_.bytes;
  stats.available = std::min(available(), uncommitted());
  stats.in_use = in_use_;
  stats.peak_in_use = peak_;
  stats.driver = driver_;
  if (driver_) stats.others_in_use = LessOrNothing(info_.size, driver_->budget);
  stats.smallest_driver_refusal = smallest_driver_refusal_;
  return stats;
}

}  // namespace heapbroker
