// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/request_ids.h"

#include <algorithm>
#include <string>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/core/memory_type_choice.h"

namespace heapbroker {
namespace {

uint64_t FingerprintOf(const AllocateRequest& request) {
  std::string text;
  for (const BlockRequest& block : request.blocks) {
    // A kind and a wish for its first property have the same name.
    absl::StrAppend(&text, block.size.count(), ",", block.alignment.count(), ",",
                    block.memory.index(), MemoryWishName(block.memory), ",",
                    block.handle_type ? static_cast<int>(*block.handle_type) : -1, ",",
                    block.device_address, block.dedicated, block.transient, block.zeroed, ";");
  }
  return absl::HashOf(text);
}

}  // namespace

absl::StatusOr<std::optional<RequestIds::Found>> RequestIds::Find(
    SessionId session, const AllocateRequest& request) const {
  if (request.request_id == RequestId()) return std::nullopt;
  const auto found = entries_.find({session, request.request_id});
  if (found == entries_.end()) return std::nullopt;
  const Entry& entry = found->second;
  if (entry.fingerprint != FingerprintOf(request)) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id: ", request.request_id.value(),
                     " stands for a request for other blocks; choose another id"));
  }
  if (entry.call) return Found(Pending{*entry.call});
  if (entry.held.size() != entry.grant.blocks.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("request_id: of what ", request.request_id.value(),
                     " was granted, some blocks have been given back; choose another id"));
  }
  return Found(entry.grant);
}

void RequestIds::Wait(SessionId session, const AllocateRequest& request, CallId call) {
  if (request.request_id == RequestId()) return;
  Entry& entry = entries_[{session, request.request_id}];
  entry.fingerprint = FingerprintOf(request);
  entry.call = call;
}

void RequestIds::Granted(SessionId session, RequestId request, const Grant& grant) {
  if (request == RequestId()) return;
  const auto found = entries_.find({session, request});
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.call = std::nullopt;
  entry.grant = grant;
  for (const GrantedBlock& block : grant.blocks) entry.held.push_back(block.id);
}

void RequestIds::Failed(SessionId session, RequestId request) {
  if (request != RequestId()) entries_.erase({session, request});
}

void RequestIds::Released(SessionId session, RequestId request, BlockId block) {
  if (request == RequestId()) return;
  const auto found = entries_.find({session, request});
  if (found == entries_.end()) return;
  std::vector<BlockId>& held = found->second.held;
  held.erase(std::remove(held.begin(), held.end(), block), held.end());
  if (held.empty()) entries_.erase(found);
}

void RequestIds::EndSession(SessionId session) {
  entries_.erase(entries_.lower_bound({session, RequestId()}),
                 entries_.lower_bound({SessionId(session.value() + 1), RequestId()}));
}

absl::StatusOr<RequestIds::ToUndo> RequestIds::Undo(SessionId session, RequestId request) const {
  if (request == RequestId()) {
    return absl::InvalidArgumentError(
        "request_id: is 0, which is no request; allowed is what Allocate was given");
  }
  const auto found = entries_.find({session, request});
  if (found == entries_.end()) {
    return absl::NotFoundError(absl::StrCat("request_id: request ", request.value(),
                                            " of this session holds and waits for nothing"));
  }
  return ToUndo{found->second.call, found->second.held};
}

}  // namespace heapbroker
