// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/segments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/core/memory_type_choice.h"

namespace heapbroker {
namespace {

absl::Status CheckSameShape(const OpenSegmentRequest& wanted, const OpenSegmentRequest& made_as) {
  if (wanted.mode != OpenMode::kCreateOrAttach) return absl::OkStatus();
  if (wanted.size == made_as.size && wanted.kind == made_as.kind) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(
      "segment \"", wanted.name, "\" exists with ", made_as.size.count(), " bytes of ",
      MemoryKindName(made_as.kind), ", asked for were ", wanted.size.count(), " bytes of ",
      MemoryKindName(wanted.kind), "; attach without a size, or choose another name"));
}

}  // namespace

absl::StatusOr<Segments::OpenResult> Segments::Open(TenantId tenant, const SegmentWaiter& opener) {
  const Key key(tenant, opener.request.name);
  auto at = table_.find(key);
  const bool creates = opener.request.mode == OpenMode::kCreateOrAttach;
  if (at == table_.end() || at->second.state == State::kAbsent) {
    if (opener.request.mode == OpenMode::kAttach) {
      return absl::NotFoundError(absl::StrCat("segment \"", opener.request.name,
                                              "\" does not exist; create it, or wait for it"));
    }
    if (at == table_.end()) at = table_.try_emplace(key).first;
    if (!creates) {
      at->second.waiters.push_back(opener);
      return OpenResult(Wait{});
    }
    BecomeWriter(key, at->second, opener);
    return OpenResult(Become{at->second.id});
  }
  Segment& segment = at->second;
  HB_RETURN_IF_ERROR(CheckSameShape(opener.request, segment.made_as));
  if (segment.state == State::kSealed || segment.state == State::kUnused) {
    return OpenResult(Attach(segment, opener.session));
  }
  // A session may wait for itself: its threads need not know of each other.
  segment.waiters.push_back(opener);
  return OpenResult(Wait{});
}

SegmentView Segments::MemoryArrived(SegmentId id, std::vector<LeasedBlock> blocks) {
  const Key& key = by_id_.at(id);
  Segment& segment = table_.at(key);
  segment.blocks = std::move(blocks);
  for (const LeasedBlock& leased : segment.blocks) by_block_.emplace(leased.block.id, key);
  segment.state = State::kFilling;
  segment.attached[segment.writer] = 1;
  return View(segment, segment.writer);
}

std::optional<Segments::Elected> Segments::MemoryFailed(SegmentId id) {
  return Abandon(table_.find(by_id_.at(id))).successor;
}

absl::StatusOr<std::vector<Segments::Attached>> Segments::Seal(SessionId session, SegmentId id,
                                                               Checksum checksum) {
  HB_ASSIGN_OR_RETURN(const Table::iterator at, FindAttached(session, id));
  Segment& segment = at->second;
  if (segment.state != State::kFilling) {
    return absl::FailedPreconditionError(
        absl::StrCat("segment_id: segment ", id.value(), " is sealed already"));
  }
  if (segment.writer != session) {
    return absl::FailedPreconditionError(
        absl::StrCat("segment_id: only its writer can seal segment ", id.value()));
  }
  segment.state = State::kSealed;
  segment.checksum = checksum;
  std::vector<Attached> attached;
  for (SegmentWaiter& waiter : segment.waiters) {
    SegmentView view = Attach(segment, waiter.session);
    attached.push_back({std::move(waiter), std::move(view)});
  }
  segment.waiters.clear();
  return attached;
}

absl::StatusOr<Segments::Abandoned> Segments::Close(SessionId session, SegmentId id) {
  HB_ASSIGN_OR_RETURN(const Table::iterator at, FindAttached(session, id));
  return Detach(at, session, 1);
}

Segments::SessionEnd Segments::EndSession(SessionId session) {
  SessionEnd end;
  for (auto it = table_.begin(); it != table_.end();) {
    const auto at = it++;  // What follows may erase it.
    Segment& segment = at->second;
    const auto first = std::stable_partition(
        segment.waiters.begin(), segment.waiters.end(),
        [session](const SegmentWaiter& waiter) { return waiter.session != session; });
    std::move(first, segment.waiters.end(), std::back_inserter(end.cancelled));
    segment.waiters.erase(first, segment.waiters.end());

    if (const auto attached = segment.attached.find(session); attached != segment.attached.end()) {
      Abandoned abandoned = Detach(at, session, attached->second);
      if (!abandoned.blocks.empty() || abandoned.successor) {
        end.abandoned.push_back(std::move(abandoned));
      }
    } else if (segment.state == State::kAbsent && segment.waiters.empty()) {
      table_.erase(at);
    }
  }
  return end;
}

std::optional<SegmentWaiter> Segments::CancelWait(SessionId session, CallId call) {
  for (auto at = table_.begin(); at != table_.end(); ++at) {
    std::deque<SegmentWaiter>& waiters = at->second.waiters;
    const auto found =
        std::find_if(waiters.begin(), waiters.end(), [session, call](const SegmentWaiter& waiter) {
          return waiter.session == session && waiter.call == call;
        });
    if (found == waiters.end()) continue;
    SegmentWaiter waiter = std::move(*found);
    waiters.erase(found);
    if (at->second.state == State::kAbsent && waiters.empty()) table_.erase(at);
    return waiter;
  }
  return std::nullopt;
}

const Block* Segments::FindBlock(SessionId session, BlockId block) const {
  const auto key = by_block_.find(block);
  if (key == by_block_.end()) return nullptr;
  const Segment& segment = table_.at(key->second);
  if (!segment.attached.contains(session)) return nullptr;
  for (const LeasedBlock& leased : segment.blocks) {
    if (leased.block.id == block) return &leased.block;
  }
  return nullptr;
}

Segments::Unused Segments::UnusedOf(uint32_t memory_type) const {
  Unused sum;
  for (const auto& [key, segment] : table_) {
    if (segment.state != State::kUnused) continue;
    if (segment.blocks.front().block.block_class.memory_type != memory_type) continue;
    for (const LeasedBlock& leased : segment.blocks) sum.bytes += leased.block.bytes();
    sum.blocks += segment.blocks.size();
  }
  return sum;
}

std::vector<LeasedBlock> Segments::EvictOne(uint32_t memory_type) {
  auto oldest = table_.end();
  for (auto at = table_.begin(); at != table_.end(); ++at) {
    if (at->second.state != State::kUnused) continue;
    if (at->second.blocks.front().block.block_class.memory_type != memory_type) continue;
    if (oldest == table_.end() || at->second.last_used < oldest->second.last_used) oldest = at;
  }
  if (oldest == table_.end()) return {};
  return Abandon(oldest).blocks;
}

uint32_t Segments::AttachmentsOf(SessionId session) const {
  uint32_t count = 0;
  for (const auto& [key, segment] : table_) count += segment.attached.contains(session) ? 1 : 0;
  return count;
}

std::vector<SegmentStats> Segments::List() const {
  std::vector<SegmentStats> list;
  for (const auto& [id, key] : by_id_) {
    const Segment& segment = table_.at(key);
    SegmentState state = SegmentState::kFilling;
    if (segment.state == State::kSealed) state = SegmentState::kSealed;
    if (segment.state == State::kUnused) state = SegmentState::kUnused;
    SegmentStats stats{.id = id,
                       .tenant = key.first,
                       .name = key.second,
                       .state = state,
                       .size = segment.made_as.size,
                       .allocated = Bytes(),
                       .checksum = segment.checksum};
    for (const LeasedBlock& leased : segment.blocks) stats.allocated += leased.block.bytes();
    stats.blocks = static_cast<uint32_t>(segment.blocks.size());
    stats.attached_sessions = static_cast<uint32_t>(segment.attached.size());
    stats.waiting_sessions = static_cast<uint32_t>(segment.waiters.size());
    list.push_back(std::move(stats));
  }
  return list;
}

void Segments::BecomeWriter(const Key& key, Segment& segment, const SegmentWaiter& waiter) {
  segment.id = SegmentId(++last_id_);
  segment.state = State::kAllocating;
  segment.made_as = waiter.request;
  segment.writer = waiter.session;
  by_id_.emplace(segment.id, key);
}

SegmentView Segments::Attach(Segment& segment, SessionId session) {
  segment.state = State::kSealed;
  ++segment.attached[session];
  return View(segment, session);
}

SegmentView Segments::View(const Segment& segment, SessionId session) {
  SegmentView view;
  view.id = segment.id;
  view.writer = segment.state == State::kFilling && segment.writer == session;
  view.size = segment.made_as.size;
  for (const LeasedBlock& leased : segment.blocks) {
    view.blocks.push_back(
        {leased.block.id, leased.size, leased.block.bytes(), leased.block.block_class});
  }
  view.checksum = segment.checksum;
  return view;
}

Segments::Abandoned Segments::Abandon(Table::iterator at) {
  Segment& segment = at->second;
  Abandoned abandoned;
  abandoned.blocks = std::move(segment.blocks);
  for (const LeasedBlock& leased : abandoned.blocks) by_block_.erase(leased.block.id);
  by_id_.erase(segment.id);
  std::deque<SegmentWaiter> waiters = std::move(segment.waiters);
  segment = Segment();
  segment.waiters = std::move(waiters);
  abandoned.successor = ElectOrForget(at);
  return abandoned;
}

std::optional<Segments::Elected> Segments::ElectOrForget(Table::iterator at) {
  Segment& segment = at->second;
  const auto next = std::find_if(
      segment.waiters.begin(), segment.waiters.end(),
      [](const SegmentWaiter& waiter) { return waiter.request.mode == OpenMode::kCreateOrAttach; });
  if (next != segment.waiters.end()) {
    SegmentWaiter waiter = std::move(*next);
    segment.waiters.erase(next);
    BecomeWriter(at->first, segment, waiter);
    return Elected{std::move(waiter), segment.id, at->first.first};
  }
  if (segment.waiters.empty()) table_.erase(at);
  return std::nullopt;
}

Segments::Abandoned Segments::Detach(Table::iterator at, SessionId session, uint32_t times) {
  Segment& segment = at->second;
  if (segment.state == State::kFilling && segment.writer == session) return Abandon(at);
  const auto attached = segment.attached.find(session);
  attached->second -= times;
  if (attached->second == 0) segment.attached.erase(attached);
  if (segment.attached.empty()) {
    segment.state = State::kUnused;
    segment.last_used = ++uses_;
  }
  return {};
}

absl::StatusOr<Segments::Table::iterator> Segments::FindAttached(SessionId session, SegmentId id) {
  if (const auto key = by_id_.find(id); key != by_id_.end()) {
    const auto at = table_.find(key->second);
    if (at->second.attached.contains(session)) return at;
  }
  // The same answer for a segment that does not exist: ids tell nothing.
  return absl::NotFoundError(
      absl::StrCat("segment_id: this session is not attached to a segment ", id.value()));
}

}  // namespace heapbroker
