// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/pages.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/text.h"
#include "daemon/rpc/convert_stats.h"

namespace heapbroker {
namespace {

constexpr uint32_t kDefaultPageSize = 100;
constexpr uint32_t kMaxPageSize = 1000;

// Leases that one call looks at. A device's mutex is held for kLeasesAtOnce of
// them, and one of the few threads that serve calls for all.
constexpr size_t kLeasesAtOnce = 1000;
constexpr size_t kMaxLeasesLookedAt = 20'000;

}  // namespace

absl::StatusOr<size_t> PageSizeOf(uint32_t page_size) {
  if (page_size > kMaxPageSize) {
    return absl::InvalidArgumentError(absl::StrCat("page_size: is ", page_size,
                                                   "; allowed are 1 to ", kMaxPageSize,
                                                   ", or 0 for ", kDefaultPageSize));
  }
  return page_size == 0 ? kDefaultPageSize : page_size;
}

absl::StatusOr<uint64_t> LastIdOf(const std::string& page_token) {
  if (page_token.empty()) return 0;
  uint64_t id = 0;
  if (!absl::SimpleAtoi(page_token, &id)) return ForeignToken(page_token);
  return id;
}

absl::Status ForeignToken(const std::string& page_token) {
  return absl::InvalidArgumentError(
      absl::StrCat("page_token: \"", Printable(page_token),
                   "\" did not come from here; send next_page_token of the last reply"));
}

bool LeasePage::AddFrom(const DeviceBroker& device, BlockId after) {
  // Of all sessions' each is wanted.
  const size_t at_once = session_ == SessionId() ? page_size_ + 1 : kLeasesAtOnce;
  while (true) {
    const std::vector<LeaseStats> leases = device.ListLeases(after, at_once);
    for (const LeaseStats& lease : leases) {
      if (!Add(lease)) return false;
    }
    if (leases.size() < at_once) return true;
    after = leases.back().block;
  }
}

// That there is one more than fits tells that there is another page.
bool LeasePage::Add(const LeaseStats& lease) {
  const bool wanted = session_ == SessionId() || lease.session == session_;
  const bool full = wanted && static_cast<size_t>(response_.leases_size()) == page_size_;
  if (full || looked_at_ == kMaxLeasesLookedAt) {
    response_.set_next_page_token(absl::StrCat(last_.value()));
    return false;
  }
  ++looked_at_;
  last_ = lease.block;
  if (wanted) *response_.add_leases() = LeaseMessage(lease);
  return true;
}

}  // namespace heapbroker
