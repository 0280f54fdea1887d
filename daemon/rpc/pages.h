// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Lists that are sent page by page.
//
// A page's token is the last id that was looked at: lists are ordered by id, and
// ids are not used again, so nothing is shown twice or left out because something
// ended between two pages.
#ifndef DAEMON_RPC_PAGES_H_
#define DAEMON_RPC_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "daemon/core/device_broker.h"
#include "heapbroker/v1/stats.pb.h"

namespace heapbroker {

//   INVALID_ARGUMENT  too many; names the field and the range
absl::StatusOr<size_t> PageSizeOf(uint32_t page_size);

// 0 for the first page.
//   INVALID_ARGUMENT  as ForeignToken
absl::StatusOr<uint64_t> LastIdOf(const std::string& page_token);
// What a token gets that no list gave out.
absl::Status ForeignToken(const std::string& page_token);

// One page of ListLeases, filled from one device after the other.
class LeasePage {
 public:
  // `session`: of this one only; of all where it names nothing.
  LeasePage(size_t page_size, SessionId session) : page_size_(page_size), session_(session) {}

  // Adds those of `device` above `after`. False when the page is complete.
  bool AddFrom(const DeviceBroker& device, BlockId after);

  v1::ListLeasesResponse Take() { return std::move(response_); }

 private:
  bool Add(const LeaseStats& lease);

  const size_t page_size_;
  const SessionId session_;
  size_t looked_at_ = 0;
  BlockId last_;
  v1::ListLeasesResponse response_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_PAGES_H_
