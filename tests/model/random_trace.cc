// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/model/random_trace.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "daemon/core/memory_type_choice.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr size_t kSessions = 6;
constexpr uint32_t kTenants = 3;
// Where limits of pools and steps of rounding lie.
constexpr Bytes kEdges[] = {Bytes(1), KiB(64), KiB(256), MiB(1), MiB(2), MiB(4), MiB(8)};
constexpr absl::Duration kWaits[] = {absl::Seconds(-1), absl::Milliseconds(100),
                                     absl::Milliseconds(500), absl::Seconds(2), absl::Seconds(10)};
constexpr uint32_t kPatience[] = {0, 1, 4, 7};

}  // namespace

RandomTrace::RandomTrace(uint32_t seed)
    : random_(seed),
      setting_(DrawSetting(random_)),
      patience_(kPatience[Draw(std::size(kPatience))]),
      model_(setting_.device, setting_.options.admission),
      simulated_(setting_.device),
      device_(simulated_, model_),
      broker_(setting_.options, {device_, executor_, events_, clock_, alarm_}) {
  simulated_.PadSizes(setting_.granularity, setting_.extra);
  model_.PadSizes(setting_.granularity, setting_.extra);
  while (sessions_.size() < kSessions) Connect();
}

void RandomTrace::Step() {
  model_.Begin(clock_.Now());
  Operate();
  Hear();
  Check();
}

void RandomTrace::Operate() {
  const uint32_t what = Draw(1000);
  if (what < 240) return Allocate();
  if (what < 420) return Release();
  if (what < 440) return Undo();
  if (what < 500) return Open();
  if (what < 570) return SealOrClose();
  if (what < 585) return Cancel();
  if (what < 600) return Report();
  if (what < 605) return Trim();
  if (what < 645) return PassTime();
  if (what < 655) return ChangeDriver();
  if (what < 663) return Disconnect();
  if (what < 673) return Settle();
  if (what < 830) {
    filled_ = executor_.RunAllocation();
    return;
  }
  executor_.RunFree();
}

void RandomTrace::End() {
  while (!sessions_.empty()) {
    model_.Begin(clock_.Now());
    model_.EndSession(sessions_.back());
    broker_.EndSession(sessions_.back());
    sessions_.pop_back();
    Hear();
    Check();
  }
  while (model_.live() > 0 || executor_.allocations() > 0) {
    model_.Begin(clock_.Now());
    broker_.EvictEverything();
    if (!executor_.RunFree() && !(filled_ = executor_.RunAllocation())) break;
    Hear();
    Check();
  }
  EXPECT_EQ(model_.live(), 0u);
  EXPECT_TRUE(model_.waiting().empty()) << "unanswered: call " << model_.waiting().begin()->first;
  const DeviceStats stats = broker_.Stats();
  EXPECT_EQ(stats.allocations, 0u);
  EXPECT_EQ(stats.segments, 0u);
  for (const HeapStats& heap : stats.heaps) EXPECT_EQ(heap.in_use, Bytes());
  for (const PoolStats& pool : stats.pools) EXPECT_EQ(pool.total(), Bytes()) << pool.name;
  EXPECT_EQ(simulated_.counts().live, 0u);
}

SessionId RandomTrace::AnySession() {
  if (OneIn(200)) return SessionId(1 + Draw(static_cast<uint32_t>(last_session_) + 1));
  return sessions_[Draw(static_cast<uint32_t>(sessions_.size()))];
}

void RandomTrace::Connect() {
  const SessionId session(++last_session_);
  const TenantId tenant(1000 + Draw(kTenants));
  EXPECT_THAT(broker_.AddSession(session, tenant), IsOk());
  model_.AddSession(session, tenant);
  sessions_.push_back(session);
}

void RandomTrace::Disconnect() {
  const size_t which = Draw(static_cast<uint32_t>(sessions_.size()));
  const SessionId session = sessions_[which];
  model_.EndSession(session);
  broker_.EndSession(session);
  if (OneIn(4)) broker_.EndSession(session);
  sessions_.erase(sessions_.begin() + which);
  Connect();
}

Bytes RandomTrace::DrawSize() {
  const Bytes largest = setting_.device.max_allocation_size;
  if (OneIn(100)) return largest;
  if (OneIn(100)) return Bytes(largest.count() + 1);
  Bytes size = kEdges[Draw(std::size(kEdges))];
  if (OneIn(3)) size = Bytes(1 + Draw(Draw(4) == 0 ? 12 << 20 : 1 << 20));
  if (OneIn(3)) size += Bytes(Draw(1 + static_cast<uint32_t>(size.count() / 8)));
  if (OneIn(4) && size > Bytes(1)) size -= Bytes(1);
  return std::min(size, largest);
}

MemoryWish RandomTrace::DrawWish() {
  if (OneIn(6)) {
    return MemoryTypeIndex{Draw(static_cast<uint32_t>(setting_.device.memory_types.size()))};
  }
  if (OneIn(12)) return MemoryTypeWish{.host_visible = true};
  if (OneIn(2)) return MemoryKind::kDeviceLocal;
  return static_cast<MemoryKind>(Draw(kMemoryKindCount));
}

BlockRequest RandomTrace::DrawBlock() {
  BlockRequest block;
  block.size = DrawSize();
  if (OneIn(4)) block.alignment = Bytes(uint64_t{1} << Draw(13));
  block.memory = DrawWish();
  if (OneIn(10)) block.handle_type = OneIn(2) ? HandleType::kOpaqueFd : HandleType::kDmaBuf;
  block.device_address = OneIn(12);
  block.dedicated = OneIn(10);
  block.transient = OneIn(5);
  block.zeroed = OneIn(8);
  return block;
}

std::optional<absl::Time> RandomTrace::DrawDeadline() {
  if (Draw(10) >= patience_) return std::nullopt;
  return clock_.Now() + kWaits[Draw(std::size(kWaits))];
}

absl::Time RandomTrace::DrawAnswerBy(const std::optional<absl::Time>& wait_until) {
  if (OneIn(3)) return absl::InfiniteFuture();
  if (wait_until && OneIn(2)) return *wait_until;
  const absl::Time later = clock_.Now() + kWaits[1 + Draw(std::size(kWaits) - 1)];
  return std::max(wait_until.value_or(later), later);
}

AllocateRequest RandomTrace::DrawRequest(SessionId session) {
  AllocateRequest request;
  request.priority = static_cast<Priority>(Draw(kPriorityCount));
  request.wait_until = DrawDeadline();
  request.answer_by = DrawAnswerBy(request.wait_until);
  request.blocks.resize(OneIn(3) ? 1 + Draw(5) : 1);
  for (BlockRequest& block : request.blocks) block = DrawBlock();
  if (OneIn(2)) return request;
  request.request_id = RequestId(++last_request_);
  const std::optional<RequestId> known = model_.AnyRequestOf(session);
  if (!known || !OneIn(4)) return request;
  // Again, or another one under the same id.
  request.request_id = *known;
  if (!OneIn(4)) request.blocks = model_.RequestOf(session, *known)->blocks;
  return request;
}

void RandomTrace::Allocate() {
  const SessionId session = AnySession();
  const AllocateRequest request = DrawRequest(session);
  const CallId call = NewCall();
  const std::optional<TenantId> tenant = model_.TenantOf(session);
  const auto expected = model_.Repetition(session, request);
  const absl::StatusCode invalid = model_.InvalidCode(session, request);
  const auto outcome = broker_.Allocate(session, call, request);
  if (invalid != absl::StatusCode::kOk) {
    EXPECT_EQ(outcome.status().code(), invalid) << outcome.status();
    return;
  }
  ReferenceModel::Call asked{session, *tenant, ReferenceModel::AllocateCall{request}};
  if (!expected) {
    model_.Asked(call, std::move(asked));
    if (!outcome.ok()) return model_.Answered(call, outcome.status(), /*at_once=*/true);
    if (const auto* grant = std::get_if<Grant>(&*outcome)) Lease(call, *grant, /*at_once=*/true);
    return;
  }
  if (expected->pending && RefusalOf(outcome.status())) {
    model_.Repeats(call, std::move(asked), *expected->pending);
    return model_.Answered(call, outcome.status(), /*at_once=*/false);
  }
  ASSERT_EQ(outcome.status().code(), expected->code) << outcome.status();
  if (!outcome.ok()) return;
  if (expected->pending) {
    model_.Repeats(call, std::move(asked), *expected->pending);
    // It may have its end, if it waits no longer. What it needs the core may know better
    // by now.
    if (const auto* grant = std::get_if<Grant>(&*outcome)) Lease(call, *grant, /*at_once=*/true);
    return;
  }
  const auto* grant = std::get_if<Grant>(&*outcome);
  ASSERT_NE(grant, nullptr) << "a grant that is held was not repeated";
  std::vector<BlockId> again;
  for (const GrantedBlock& block : grant->blocks) again.push_back(block.id);
  EXPECT_EQ(again, expected->granted);
}

void RandomTrace::Lease(CallId call, const Grant& grant, bool at_once) {
  const SessionId session = model_.waiting().at(call).session;
  for (size_t i = 0; i < grant.blocks.size(); ++i) {
    const BlockId id = grant.blocks[i].id;
    const auto fetched = broker_.Fetch(session, id);
    ASSERT_THAT(fetched, IsOk());
    const std::vector<LeaseStats> listed = broker_.ListLeases(BlockId(id.value() - 1), 1);
    ASSERT_EQ(listed.size(), 1u);
    EXPECT_EQ(listed[0].block, id);
    EXPECT_EQ(listed[0].session, session);
    model_.Leased(call, i, grant.blocks[i], fetched->exported.get(), listed[0].pool);
  }
  model_.Granted(call, grant, at_once);
}

void RandomTrace::Release() {
  const SessionId session = AnySession();
  std::vector<BlockId> held = model_.BlocksOf(session);
  std::vector<BlockId> blocks;
  for (uint32_t i = 0; i < 1 + Draw(OneIn(4) ? 4 : 1) && !held.empty(); ++i) {
    const uint32_t which = Draw(static_cast<uint32_t>(held.size()));
    blocks.push_back(held[which]);
    // Now and then left there, to be named twice.
    if (!OneIn(20)) held.erase(held.begin() + which);
  }
  // Somebody else's, or one that is not leased any more.
  if (OneIn(40)) {
    const std::vector<BlockId> others = model_.BlocksOf(AnySession());
    blocks.push_back(others.empty() ? BlockId(1 + Draw(1000)) : others.front());
  }
  const absl::StatusCode expected = model_.ReleaseCode(session, blocks);
  if (expected == absl::StatusCode::kOk) model_.Released(blocks);
  const absl::Status status = broker_.Release(session, blocks);
  EXPECT_EQ(status.code(), expected) << status;
}

void RandomTrace::Undo() {
  const SessionId session = AnySession();
  RequestId request = model_.AnyRequestOf(session).value_or(RequestId(Draw(3)));
  if (OneIn(10)) request = RequestId(Draw(static_cast<uint32_t>(last_request_) + 2));
  const absl::StatusCode expected = model_.UndoCode(session, request);
  if (expected == absl::StatusCode::kOk) model_.Undone(session, request);
  const absl::Status status = broker_.Undo(session, request);
  EXPECT_EQ(status.code(), expected) << status;
}

void RandomTrace::Open() {
  const SessionId session = AnySession();
  const char name = static_cast<char>('a' + Draw(4));
  OpenSegmentRequest request;
  request.name = std::string(1, name);
  request.mode = static_cast<OpenMode>(OneIn(3) ? Draw(3) : 0);
  if (request.mode == OpenMode::kCreateOrAttach) {
    request.size = Bytes((name - 'a' + 1) * 3000000);
    if (OneIn(20)) request.size += Bytes(1);
    request.wait_until = DrawDeadline();
    request.answer_by = DrawAnswerBy(request.wait_until);
  }
  const CallId call = NewCall();
  const std::optional<TenantId> tenant = model_.TenantOf(session);
  const auto outcome = broker_.OpenSegment(session, call, request);
  if (!tenant) {
    EXPECT_THAT(outcome, StatusIs(absl::StatusCode::kUnauthenticated, ""));
    return;
  }
  model_.Asked(call, {session, *tenant, ReferenceModel::OpenCall{request}});
  if (!outcome.ok()) return model_.Answered(call, outcome.status(), /*at_once=*/true);
  if (const auto* view = std::get_if<SegmentView>(&*outcome)) Attach(call, session, *view);
}

void RandomTrace::Attach(CallId call, SessionId session, const SegmentView& view) {
  std::vector<const ExportedHandle*> handles;
  for (const GrantedBlock& block : view.blocks) {
    const auto fetched = broker_.Fetch(session, block.id);
    ASSERT_THAT(fetched, IsOk());
    handles.push_back(fetched->exported.get());
  }
  model_.Attached(call, view, handles);
}

void RandomTrace::SealOrClose() {
  const SessionId session = AnySession();
  const std::vector<SegmentId> segments = model_.SegmentsOf(session);
  if (segments.empty()) return;
  const SegmentId segment = segments[Draw(static_cast<uint32_t>(segments.size()))];
  const bool fills = model_.Fills(session, segment);
  if (fills ? !OneIn(4) : OneIn(10)) {
    const absl::Status sealed = broker_.SealSegment(session, segment, Checksum{1, 2});
    EXPECT_EQ(sealed.ok(), fills) << sealed;
    if (fills) model_.Sealed(segment);
    return;
  }
  model_.Closed(session, segment);
  EXPECT_THAT(broker_.CloseSegment(session, segment), IsOk());
}

void RandomTrace::Cancel() {
  if (model_.waiting().empty()) return;
  auto it = model_.waiting().begin();
  std::advance(it, Draw(static_cast<uint32_t>(model_.waiting().size())));
  const CallId call = it->first;
  const SessionId session = OneIn(10) ? AnySession() : it->second.session;
  model_.Cancelled(session, call);
  broker_.Cancel(session, call);
}

void RandomTrace::Report() {
  const SessionId session = AnySession();
  if (!model_.TenantOf(session)) return;
  std::vector<IdleReport> reports;
  for (uint32_t heap = 0; heap < setting_.device.heaps.size(); ++heap) {
    if (OneIn(3)) continue;
    const Bytes held = model_.HeldOn(session, heap);
    reports.push_back({heap, OneIn(4) ? held + MiB(1) : Bytes(held.count() / (1 + Draw(3)))});
  }
  model_.ReportedIdle(session, reports);
  EXPECT_THAT(broker_.ReportIdle(session, reports), IsOk());
}

void RandomTrace::Trim() {
  TrimRequest request;
  request.target = MiB(Draw(40));
  request.segments = OneIn(2);
  if (OneIn(2)) {
    const auto& pools = setting_.options.admission.pools;
    request.pool = pools[Draw(static_cast<uint32_t>(pools.size()))].name;
  }
  const DeviceStats before = broker_.Stats();
  const auto trimmed = broker_.Trim(request);
  ASSERT_THAT(trimmed, IsOk());
  Bytes held;
  bool any_idle = false;
  for (const PoolStats& pool : broker_.Stats().pools) {
    if (request.pool && pool.name != *request.pool) continue;
    held += pool.leased + pool.idle;
    any_idle |= pool.idle > Bytes();
  }
  // Those that wait may have taken what was given up.
  if (model_.waiting().empty()) EXPECT_TRUE(held <= request.target || !any_idle);
}

void RandomTrace::PassTime() {
  clock_.Advance(absl::Milliseconds(OneIn(8) ? Draw(6000) : Draw(300)));
  model_.Begin(clock_.Now());
  if (OneIn(4)) return;
  broker_.Tick();
  ticked_ = true;
}

// The device does all that it has to, so that nothing is on its way for a while.
void RandomTrace::Settle() {
  // What is idle is known for certain then.
  if (OneIn(3)) EXPECT_THAT(broker_.Trim({std::nullopt, Bytes(), /*segments=*/false}), IsOk());
  while (executor_.allocations() + executor_.frees() > 0) {
    Hear();
    Check();
    model_.Begin(clock_.Now());
    if (!executor_.RunFree()) filled_ = executor_.RunAllocation();
  }
}

void RandomTrace::ChangeDriver() {
  switch (Draw(4)) {
    case 0:
      return simulated_.FailAllocations(absl::ResourceExhaustedError("driver"), 1 + Draw(3));
    case 1:
      return simulated_.FailAllocations(absl::InternalError("driver"), 1);
    case 2:
      return simulated_.FailClears(absl::InternalError("clear"), 1);
    default:
      break;
  }
  std::vector<HeapReport> reports;
  for (const HeapInfo& heap : setting_.device.heaps) {
    reports.push_back({OneIn(3) ? heap.size : MiB(Draw(120)), Bytes()});
  }
  simulated_.ReportHeaps(std::move(reports));
}

void RandomTrace::Hear() {
  for (auto& [session, event] : events_.Take()) {
    if (const auto* done = std::get_if<AllocateDone>(&event)) {
      // The call that another one took the place of is not waited for any more.
      if (absl::IsAborted(done->grant.status())) {
        EXPECT_FALSE(model_.waiting().contains(done->call));
        continue;
      }
      ASSERT_TRUE(model_.waiting().contains(done->call)) << "answered twice: " << done->call;
      if (done->grant.ok()) {
        Lease(done->call, *done->grant, /*at_once=*/false);
      } else {
        model_.Answered(done->call, done->grant.status(), /*at_once=*/false);
      }
    } else if (const auto* opened = std::get_if<OpenSegmentDone>(&event)) {
      ASSERT_TRUE(model_.waiting().contains(opened->call)) << "answered twice: " << opened->call;
      if (opened->segment.ok()) {
        Attach(opened->call, session, *opened->segment);
      } else {
        model_.Answered(opened->call, opened->segment.status(), /*at_once=*/false);
      }
    } else if (const auto* wanted = std::get_if<GiveBackWanted>(&event)) {
      model_.Wanted(session, *wanted);
    }
  }
}

void RandomTrace::Check() {
  const DeviceStats stats = broker_.Stats();
  if (stats.segment_bytes != model_.SegmentBytes()) model_.Reconcile(broker_.ListSegments());
  model_.Check(stats, {executor_.allocations(), std::exchange(filled_, false), executor_.frees()});
  model_.CheckRefusals();
  if (std::exchange(ticked_, false)) model_.CheckDeadlines(stats);
}

}  // namespace heapbroker
