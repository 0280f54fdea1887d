// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/segments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

// Takes one `key` out of what is kept for `session`, and the session's entry with
// its last one.
template <typename Map, typename Key>
void RemoveOne(Map& map, SessionId session, const Key& key) {
  const auto found = map.find(session);
  found->second.erase(found->second.find(key));
  if (found->second.empty()) map.erase(found);
}

}  // namespace

absl::Status Segments::NotFound(const std::string& name) {
  return absl::NotFoundError(
      absl::StrCat("segment \"", name, "\" does not exist; create it, or wait for it"));
}

absl::StatusOr<Segments::OpenResult> Segments::Open(TenantId tenant, const SegmentWaiter& opener) {
  const Key key(tenant, opener.request.name);
  auto at = table_.find(key);
  const bool creates = opener.request.mode == OpenMode::kCreateOrAttach;
  if (at == table_.end() || at->second.state == State::kAbsent) {
    if (opener.request.mode == OpenMode::kAttach) return NotFound(opener.request.name);
    if (at == table_.end()) at = Enter(key);
    if (!creates) {
      AddWaiter(key, at->second, opener);
      return OpenResult(Wait{});
    }
    BecomeWriter(key, at->second, opener);
    return OpenResult(Become{at->second.id});
  }
  Segment& segment = at->second;
  HB_RETURN_IF_ERROR(CheckSameShape(opener, segment.made_as));
  if (segment.state == State::kSealed || segment.state == State::kUnused) {
    return OpenResult(Attach(key, segment, opener.session));
  }
  // A session may wait for itself: its threads need not know of each other.
  AddWaiter(key, segment, opener);
  return OpenResult(Wait{});
}

SegmentView Segments::MemoryArrived(SegmentId id, std::vector<LeasedBlock> blocks) {
  const Key& key = by_id_.at(id);
  Segment& segment = table_.at(key);
  segment.blocks = std::move(blocks);
  for (const LeasedBlock& leased : segment.blocks) by_block_.emplace(leased.block.id, key);
  for (const LeasedBlock& leased : segment.blocks) totals_.allocated += leased.block.bytes();
  segment.state = State::kFilling;
  AddAttachment(key, segment, segment.writer);
  return View(segment, segment.writer);
}

Segments::Abandoned Segments::MemoryFailed(SegmentId id) {
  return Abandon(table_.find(by_id_.at(id)));
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
  while (!segment.waiters.empty()) {
    SegmentWaiter waiter = RemoveWaiter(at->first, segment, segment.waiters.begin());
    SegmentView view = Attach(at->first, segment, waiter.session);
    attached.push_back({std::move(waiter), std::move(view)});
  }
  return attached;
}

absl::StatusOr<Segments::Abandoned> Segments::Close(SessionId session, SegmentId id) {
  HB_ASSIGN_OR_RETURN(const Table::iterator at, FindAttached(session, id));
  return Detach(at, session, 1);
}

Segments::SessionEnd Segments::EndSession(SessionId session) {
  SessionEnd end;
  const auto found = by_session_.find(session);
  if (found == by_session_.end()) return end;
  // Copied, since every step takes something out of the original.
  std::map<uint64_t, Key> keys;
  for (const Key& key : found->second) keys.emplace(table_.at(key).number, key);
  for (const auto& [number, key] : keys) EndSessionIn(key, session, end);
  return end;
}

void Segments::EndSessionIn(const Key& key, SessionId session, SessionEnd& end) {
  const auto at = table_.find(key);
  Segment& segment = at->second;
  for (size_t i = 0; i < segment.waiters.size();) {
    if (segment.waiters[i].session != session) {
      ++i;
      continue;
    }
    end.cancelled.push_back(RemoveWaiter(key, segment, segment.waiters.begin() + i));
  }
  if (const auto attached = segment.attached.find(session); attached != segment.attached.end()) {
    end.abandoned.push_back(Detach(at, session, attached->second));
  } else if (segment.state == State::kAbsent && segment.waiters.empty()) {
    table_.erase(at);
  }
}

std::optional<SegmentWaiter> Segments::CancelWait(SessionId session, CallId call) {
  const auto found = by_call_.find(call);
  if (found == by_call_.end()) return std::nullopt;
  const auto at = table_.find(found->second);
  Waiters& waiters = at->second.waiters;
  const auto waiter =
      std::find_if(waiters.begin(), waiters.end(),
                   [call](const SegmentWaiter& other) { return other.call == call; });
  if (waiter->session != session) return std::nullopt;
  SegmentWaiter cancelled = RemoveWaiter(at->first, at->second, waiter);
  if (at->second.state == State::kAbsent && waiters.empty()) table_.erase(at);
  return cancelled;
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
  const auto found = unused_.find(memory_type);
  return found == unused_.end() ? Unused() : found->second.sum;
}

std::optional<uint64_t> Segments::OldestUnused(uint32_t memory_type) const {
  const auto found = unused_.find(memory_type);
  if (found == unused_.end() || found->second.by_last_use.empty()) return std::nullopt;
  return found->second.by_last_use.begin()->first;
}

std::vector<LeasedBlock> Segments::EvictOne(uint32_t memory_type) {
  const auto found = unused_.find(memory_type);
  if (found == unused_.end() || found->second.by_last_use.empty()) return {};
  return Abandon(table_.find(found->second.by_last_use.begin()->second)).blocks;
}

uint32_t Segments::AttachmentsOf(SessionId session) const {
  const auto found = attachments_of_.find(session);
  return found == attachments_of_.end() ? 0 : found->second;
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
                       .size = segment.made_as.request.size,
                       .allocated = Bytes(),
                       .checksum = segment.checksum};
    for (const LeasedBlock& leased : segment.blocks) stats.allocated += leased.block.bytes();
    stats.blocks = static_cast<uint32_t>(segment.blocks.size());
    stats.attached_sessions = static_cast<uint32_t>(segment.attached.size());
    stats.waiting_calls = static_cast<uint32_t>(segment.waiters.size());
    list.push_back(std::move(stats));
  }
  return list;
}

Segments::Table::iterator Segments::Enter(const Key& key) {
  const Table::iterator at = table_.try_emplace(key).first;
  at->second.number = ++last_number_;
  return at;
}

void Segments::BecomeWriter(const Key& key, Segment& segment, const SegmentWaiter& waiter) {
  segment.id = SegmentId(NumberOnDevice(++last_id_, device_index_));
  segment.state = State::kAllocating;
  segment.made_as = waiter;
  segment.writer = waiter.session;
  by_id_.emplace(segment.id, key);
  ++totals_.count;
}

SegmentView Segments::Attach(const Key& key, Segment& segment, SessionId session) {
  if (segment.state == State::kUnused) EndUnused(segment);
  segment.state = State::kSealed;
  AddAttachment(key, segment, session);
  return View(segment, session);
}

void Segments::AddAttachment(const Key& key, Segment& segment, SessionId session) {
  if (++segment.attached[session] > 1) return;
  ++attachments_of_[session];
  by_session_[session].insert(key);
}

void Segments::RemoveAttachments(const Key& key, Segment& segment, SessionId session,
                                 uint32_t times) {
  const auto attached = segment.attached.find(session);
  attached->second -= times;
  if (attached->second > 0) return;
  segment.attached.erase(attached);
  const auto count = attachments_of_.find(session);
  if (--count->second == 0) attachments_of_.erase(count);
  RemoveOne(by_session_, session, key);
}

void Segments::AddWaiter(const Key& key, Segment& segment, const SegmentWaiter& waiter) {
  segment.waiters.push_back(waiter);
  by_call_.emplace(waiter.call, key);
  by_session_[waiter.session].insert(key);
}

SegmentWaiter Segments::RemoveWaiter(const Key& key, Segment& segment, Waiters::iterator at) {
  SegmentWaiter waiter = std::move(*at);
  segment.waiters.erase(at);
  by_call_.erase(waiter.call);
  RemoveOne(by_session_, waiter.session, key);
  return waiter;
}

void Segments::BecomeUnused(const Key& key, Segment& segment) {
  segment.state = State::kUnused;
  segment.last_used = ++uses_;
  UnusedSegments& unused = unused_[segment.memory_type()];
  unused.by_last_use.emplace(segment.last_used, key);
  for (const LeasedBlock& leased : segment.blocks) unused.sum.bytes += leased.block.bytes();
  unused.sum.blocks += segment.blocks.size();
}

void Segments::EndUnused(Segment& segment) {
  UnusedSegments& unused = unused_[segment.memory_type()];
  unused.by_last_use.erase(segment.last_used);
  for (const LeasedBlock& leased : segment.blocks) unused.sum.bytes -= leased.block.bytes();
  unused.sum.blocks -= segment.blocks.size();
}

SegmentView Segments::View(const Segment& segment, SessionId session) {
  SegmentView view;
  view.id = segment.id;
  view.writer = segment.state == State::kFilling && segment.writer == session;
  view.size = segment.made_as.request.size;
  for (const LeasedBlock& leased : segment.blocks) {
    view.blocks.push_back(
        {leased.block.id, leased.size, leased.block.bytes(), leased.block.block_class});
  }
  view.checksum = segment.checksum;
  return view;
}

Segments::Abandoned Segments::Abandon(Table::iterator at) {
  const Key key = at->first;  // `at` may be gone at the end.
  Segment& segment = at->second;
  if (segment.state == State::kUnused) EndUnused(segment);
  Abandoned abandoned;
  abandoned.blocks = std::move(segment.blocks);
  for (const LeasedBlock& leased : abandoned.blocks) {
    by_block_.erase(leased.block.id);
    totals_.allocated -= leased.block.bytes();
  }
  by_id_.erase(segment.id);
  --totals_.count;
  while (!segment.attached.empty()) {
    const auto [session, times] = *segment.attached.begin();
    RemoveAttachments(key, segment, session, times);
  }
  Segment absent;
  absent.number = segment.number;
  absent.waiters = std::move(segment.waiters);
  segment = std::move(absent);
  abandoned.successor = Elect(at);
  if (abandoned.successor) return abandoned;
  for (size_t i = 0; i < segment.waiters.size();) {
    if (segment.waiters[i].request.mode != OpenMode::kAttach) {
      ++i;
      continue;
    }
    abandoned.not_found.push_back(RemoveWaiter(key, segment, segment.waiters.begin() + i));
  }
  if (segment.waiters.empty()) table_.erase(at);
  return abandoned;
}

std::optional<Segments::Elected> Segments::Elect(Table::iterator at) {
  Segment& segment = at->second;
  const auto next = std::find_if(
      segment.waiters.begin(), segment.waiters.end(),
      [](const SegmentWaiter& waiter) { return waiter.request.mode == OpenMode::kCreateOrAttach; });
  if (next == segment.waiters.end()) return std::nullopt;
  SegmentWaiter waiter = RemoveWaiter(at->first, segment, next);
  BecomeWriter(at->first, segment, waiter);
  return Elected{std::move(waiter), segment.id, at->first.first};
}

Segments::Abandoned Segments::Detach(Table::iterator at, SessionId session, uint32_t times) {
  Segment& segment = at->second;
  if (segment.state == State::kFilling && segment.writer == session) return Abandon(at);
  RemoveAttachments(at->first, segment, session, times);
  if (segment.attached.empty()) BecomeUnused(at->first, segment);
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
