// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/model/reference_model.h"

#include <algorithm>

#include "daemon/core/block_size.h"
#include "daemon/core/memory_type_choice.h"
#include "gtest/gtest.h"

namespace heapbroker {

ReferenceModel::ReferenceModel(DeviceInfo device, AdmissionOptions options)
    : device_(std::move(device)),
      options_(std::move(options)),
      driver_budget_(device_.heaps.size()),
      pool_sums_(options_.pools.size() + 1),
      heap_sums_(device_.heaps.size()) {
  for (const ResolvedPool& pool : options_.pools) {
    pool_by_name_.emplace(pool.name, pool_by_name_.size());
  }
  pool_by_name_.emplace("direct", options_.pools.size());
}

void ReferenceModel::Allocated(const BlockClass& block_class, const DeviceAllocation& allocation) {
  Memory memory;
  memory.block_class = block_class;
  memory.bytes = allocation.allocation_size;
  memory.made_for = sized_;
  memory.handle = allocation.exported.get();
  EXPECT_TRUE(by_handle_.emplace(memory.handle, allocation.id).second);
  heap_sums_[HeapOf(block_class.memory_type)].live += memory.bytes;
  EXPECT_TRUE(memory_.emplace(allocation.id, std::move(memory)).second);
}

void ReferenceModel::Freed(DeviceAllocationId id) {
  const auto found = memory_.find(id);
  ASSERT_NE(found, memory_.end()) << "freed, but not there: " << id;
  if (found->second.held) {
    // A segment may have been evicted; nothing else goes while it is held.
    const auto owner = std::find_if(segments_.begin(), segments_.end(), [id](const auto& segment) {
      return std::any_of(segment.second.blocks.begin(), segment.second.blocks.end(),
                         [id](const auto& block) { return block.second == id; });
    });
    ASSERT_NE(owner, segments_.end()) << "freed while it is leased: " << id;
    EXPECT_TRUE(owner->second.attached.empty()) << "freed while it is attached: " << id;
    Forget(owner);
  }
  heap_sums_[HeapOf(found->second.block_class.memory_type)].live -= found->second.bytes;
  by_handle_.erase(found->second.handle);
  memory_.erase(found);
}

void ReferenceModel::HeapsRead(absl::Span<const HeapReport> reports) {
  heaps_read_ = true;
  for (size_t heap = 0; heap < reports.size(); ++heap) {
    driver_budget_[heap] = std::nullopt;
    if (reports[heap].budget == Bytes()) continue;
    driver_budget_[heap] = std::min(reports[heap].budget, device_.heaps[heap].size);
  }
}

Bytes ReferenceModel::NowOn(uint32_t heap) const {
  const HeapLimit& limit = options_.heaps[heap];
  if (!driver_budget_[heap] || !limit.driver_per_mille) return limit.bytes;
  return std::min(limit.bytes,
                  Bytes(driver_budget_[heap]->count() * *limit.driver_per_mille / 1000));
}

void ReferenceModel::Begin(absl::Time now) {
  now_ = now;
  device_refused_ = tenants_changed_ = heaps_read_ = false;
  ended_.clear();
  refused_.clear();
  now_before_.clear();
  for (uint32_t heap = 0; heap < device_.heaps.size(); ++heap) now_before_.push_back(NowOn(heap));
}

void ReferenceModel::EndSession(SessionId session) {
  const std::set<BlockId> blocks = leases_of_[session];
  for (BlockId block : blocks) EndLease(block, /*retire=*/true);
  leases_of_.erase(session);
  for (auto it = segments_.begin(); it != segments_.end();) {
    const auto at = it++;
    if (at->second.attached.contains(session)) {
      at->second.attached[session] = 1;
      Closed(session, at->first);
    }
  }
  for (auto& [heap, sessions] : idle_in_clients_) sessions.erase(session);
  requests_.erase(requests_.lower_bound({session, RequestId()}),
                  requests_.lower_bound({SessionId(session.value() + 1), RequestId()}));
  for (auto& [id, call] : calls_) {
    if (call.session == session) call.cancelled = true;
  }
  tenants_.erase(session);
  tenants_changed_ = true;
}

void ReferenceModel::Asked(CallId id, Call call) {
  if (const auto* allocate = std::get_if<AllocateCall>(&call.what)) {
    const RequestId request = allocate->request.request_id;
    if (request != RequestId()) {
      requests_[{call.session, request}] = {allocate->request, id, {}, {}};
    }
  }
  call.needs = NeedsOf(call);
  call.asked_at = now_;
  if (std::holds_alternative<AllocateCall>(call.what)) idle_.Asked(IdleRequestOf(call));
  EXPECT_TRUE(calls_.emplace(id, std::move(call)).second);
}

void ReferenceModel::Answered(CallId id, const absl::Status& error, bool at_once) {
  const auto found = calls_.find(id);
  ASSERT_NE(found, calls_.end()) << "answered twice, or never asked: call " << id;
  const Call call = std::move(found->second);
  calls_.erase(found);
  ended_.push_back(call);
  if (const auto* allocate = std::get_if<AllocateCall>(&call.what)) {
    const auto remembered = requests_.find({call.session, allocate->request.request_id});
    if (remembered != requests_.end() && remembered->second.call == id) {
      requests_.erase(remembered);
    }
  }
  if (absl::IsCancelled(error)) {
    EXPECT_TRUE(call.cancelled) << "nobody cancelled call " << id;
  } else if (const std::optional<Refusal> refusal = RefusalOf(error)) {
    refused_.push_back({ended_.size() - 1, *refusal, at_once});
  } else if (absl::IsNotFound(error)) {
    const auto* open = std::get_if<OpenCall>(&call.what);
    EXPECT_TRUE(open != nullptr && open->request.mode == OpenMode::kAttach) << error;
  } else if (absl::IsInternal(error) || absl::IsUnavailable(error)) {
    EXPECT_TRUE(device_refused_) << error;
  } else {
    EXPECT_TRUE(at_once) << error;
  }
}

DeviceAllocationId ReferenceModel::Hold(const ExportedHandle* handle, TenantId tenant, size_t pool,
                                        const GrantedBlock& block) {
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end()) {
    ADD_FAILURE() << "block " << block.id << " is memory that the device does not have";
    return DeviceAllocationId();
  }
  Memory& memory = memory_.at(found->second);
  EXPECT_FALSE(memory.held) << "block " << block.id << " is leased to two";
  EXPECT_FALSE(memory.retired) << "block " << block.id << " should have been freed";
  EXPECT_EQ(memory.tenant.value_or(tenant), tenant) << "block " << block.id;
  EXPECT_EQ(memory.pool.value_or(pool), pool) << "block " << block.id;
  EXPECT_EQ(memory.bytes, block.allocation_size);
  EXPECT_EQ(memory.block_class, block.block_class);
  EXPECT_TRUE(ids_.insert(block.id).second) << "an id used again: " << block.id;
  memory.tenant = tenant;
  memory.pool = pool;
  memory.held = true;
  PoolSums& sums = pool_sums_[pool];
  sums.leased += memory.bytes;
  sums.rounding += memory.bytes - block.size;
  ++sums.blocks;
  Use(memory, true);
  return found->second;
}

void ReferenceModel::Use(const Memory& memory, bool used) {
  Bytes& sum = heap_sums_[HeapOf(memory.block_class.memory_type)].used;
  if (used) {
    sum += memory.bytes;
    ++used_blocks_;
  } else {
    sum -= memory.bytes;
    --used_blocks_;
  }
}

void ReferenceModel::Leased(CallId id, size_t index, const GrantedBlock& block,
                            const ExportedHandle* handle, const std::string& pool_name) {
  const Call& call = calls_.at(id);
  const AllocateRequest& asked = std::get<AllocateCall>(call.what).request;
  ASSERT_LT(index, asked.blocks.size());
  const BlockRequest& request = asked.blocks[index];
  const size_t pool = pool_by_name_.at(pool_name);
  const auto before = by_handle_.find(handle);
  const bool reused = before != by_handle_.end() && memory_.at(before->second).tenant.has_value();
  const DeviceAllocationId at = Hold(handle, call.tenant, pool, block);
  if (at == DeviceAllocationId()) return;
  leases_.emplace(block.id, Lease{call.session, at, block.size, asked.request_id});
  leases_of_[call.session].insert(block.id);
  Memory& memory = memory_.at(at);

  EXPECT_EQ(block.size, request.size);
  const Need need = call.needs[index];
  const uint32_t type = block.block_class.memory_type;
  EXPECT_EQ(std::count(need.types.begin(), need.types.end(), type), 1) << "memory type " << type;
  EXPECT_EQ(block.block_class.device_address, request.device_address);
  EXPECT_EQ(block.block_class.dedicated, request.dedicated);
  EXPECT_GE(memory.made_for, need.bytes);
  if (request.zeroed) EXPECT_TRUE(memory.clean) << "block " << block.id << " holds old contents";
  memory.clean = false;
  if (pool < options_.pools.size()) {
    const ResolvedPool& config = options_.pools[pool];
    EXPECT_EQ(config.memory_type, type);
    EXPECT_LE(request.size, config.limits.max_allocation_size) << config.name;
    EXPECT_TRUE(request.transient || !config.transient) << config.name;
  } else {
    EXPECT_FALSE(reused) << "what no pool serves is never kept";
  }
  const SizeRange range =
      AcceptableBlocks(options_.matching, need.bytes, device_.max_allocation_size);
  if (reused) {
    EXPECT_LE(memory.made_for, range.largest);
    ++seen_.reuses;
    idle_.Reused(at);
  }
}

void ReferenceModel::Granted(CallId id, const Grant& grant, bool at_once) {
  const auto found = calls_.find(id);
  ASSERT_NE(found, calls_.end()) << "answered twice, or never asked: call " << id;
  const Call call = found->second;
  const AllocateRequest& request = std::get<AllocateCall>(call.what).request;
  EXPECT_EQ(grant.blocks.size(), request.blocks.size());
  EXPECT_TRUE(at_once || tenants_.contains(call.session)) << "granted to an ended session";
  calls_.erase(found);
  ended_.push_back(call);
  ++seen_.grants;
  const auto remembered = requests_.find({call.session, request.request_id});
  if (remembered == requests_.end() || remembered->second.call != id) return;
  remembered->second.call = std::nullopt;
  for (const GrantedBlock& block : grant.blocks) {
    remembered->second.granted.push_back(block.id);
    remembered->second.held.insert(block.id);
  }
}

void ReferenceModel::Attached(CallId id, const SegmentView& view,
                              const std::vector<const ExportedHandle*>& handles) {
  const auto found = calls_.find(id);
  ASSERT_NE(found, calls_.end()) << "answered twice, or never asked: call " << id;
  const Call call = std::move(found->second);
  calls_.erase(found);
  ended_.push_back(call);
  ++seen_.attached;
  const std::string& name = std::get<OpenCall>(call.what).request.name;
  auto at = segments_.find(view.id);
  if (at == segments_.end()) {
    EXPECT_TRUE(view.writer) << "segment " << view.id << " has contents from nowhere";
    Segment segment{call.tenant, name, call.session, {}, {}, false};
    for (size_t i = 0; i < view.blocks.size(); ++i) {
      const auto memory = by_handle_.find(handles[i]);
      EXPECT_TRUE(memory != by_handle_.end() && !memory_.at(memory->second).tenant)
          << "a segment's memory must be fresh";
      segment.blocks.emplace_back(
          view.blocks[i].id, Hold(handles[i], call.tenant, options_.pools.size(), view.blocks[i]));
      segment_bytes_ += view.blocks[i].allocation_size;
    }
    at = segments_.emplace(view.id, std::move(segment)).first;
  } else if (at->second.attached.empty()) {
    for (const auto& [block, memory] : at->second.blocks) Use(memory_.at(memory), true);
  }
  Segment& segment = at->second;
  EXPECT_EQ(segment.tenant, call.tenant);
  EXPECT_EQ(segment.name, name);
  EXPECT_EQ(view.writer, !segment.sealed);
  EXPECT_EQ(view.checksum.has_value(), segment.sealed);
  ASSERT_EQ(view.blocks.size(), segment.blocks.size());
  for (size_t i = 0; i < view.blocks.size(); ++i) {
    EXPECT_EQ(view.blocks[i].id, segment.blocks[i].first);
    EXPECT_EQ(by_handle_.at(handles[i]), segment.blocks[i].second);
  }
  ++segment.attached[call.session];
}

std::optional<ReferenceModel::Repeated> ReferenceModel::Repetition(
    SessionId session, const AllocateRequest& request) const {
  const auto found = requests_.find({session, request.request_id});
  if (request.request_id == RequestId() || found == requests_.end()) return std::nullopt;
  const Remembered& known = found->second;
  const auto same = [](const BlockRequest& a, const BlockRequest& b) {
    return a.size == b.size && a.alignment == b.alignment && a.memory == b.memory &&
           a.handle_type == b.handle_type && a.device_address == b.device_address &&
           a.dedicated == b.dedicated && a.transient == b.transient && a.zeroed == b.zeroed;
  };
  if (!std::equal(known.request.blocks.begin(), known.request.blocks.end(), request.blocks.begin(),
                  request.blocks.end(), same)) {
    return Repeated{absl::StatusCode::kInvalidArgument, std::nullopt};
  }
  if (known.call) return Repeated{absl::StatusCode::kOk, known.call};
  if (known.held.size() != known.granted.size()) {
    return Repeated{absl::StatusCode::kFailedPrecondition, std::nullopt};
  }
  return Repeated{absl::StatusCode::kOk, std::nullopt, known.granted};
}

void ReferenceModel::Repeats(CallId id, Call call, CallId earlier) {
  ended_.push_back(calls_.at(earlier));
  calls_.erase(earlier);
  const RequestId request = std::get<AllocateCall>(call.what).request.request_id;
  requests_.at({call.session, request}).call = id;
  call.needs = NeedsOf(call);
  call.asked_at = now_;
  calls_.emplace(id, std::move(call));
}

std::optional<TenantId> ReferenceModel::TenantOf(SessionId session) const {
  const auto found = tenants_.find(session);
  if (found == tenants_.end()) return std::nullopt;
  return found->second;
}

absl::StatusCode ReferenceModel::InvalidCode(SessionId session,
                                             const AllocateRequest& request) const {
  if (!tenants_.contains(session)) return absl::StatusCode::kUnauthenticated;
  for (const BlockRequest& block : request.blocks) {
    if (block.size > device_.max_allocation_size) return absl::StatusCode::kInvalidArgument;
    const auto types = ChooseMemoryTypes(device_, block.memory, block.handle_type);
    if (!types.ok()) return types.status().code();
  }
  return absl::StatusCode::kOk;
}

absl::StatusCode ReferenceModel::ReleaseCode(SessionId session,
                                             absl::Span<const BlockId> blocks) const {
  const std::set<BlockId> distinct(blocks.begin(), blocks.end());
  if (blocks.empty()) return absl::StatusCode::kInvalidArgument;
  std::set<BlockId> before;
  for (BlockId block : blocks) {
    if (!before.insert(block).second) return absl::StatusCode::kInvalidArgument;
    const auto found = leases_.find(block);
    if (found == leases_.end() || found->second.session != session) {
      return absl::StatusCode::kNotFound;
    }
  }
  return absl::StatusCode::kOk;
}

void ReferenceModel::Released(absl::Span<const BlockId> blocks) {
  for (BlockId block : blocks) EndLease(block, /*retire=*/false);
}

absl::StatusCode ReferenceModel::UndoCode(SessionId session, RequestId request) const {
  if (!tenants_.contains(session)) return absl::StatusCode::kUnauthenticated;
  if (request == RequestId()) return absl::StatusCode::kInvalidArgument;
  return requests_.contains({session, request}) ? absl::StatusCode::kOk
                                                : absl::StatusCode::kNotFound;
}

void ReferenceModel::Undone(SessionId session, RequestId request) {
  const Remembered known = requests_.at({session, request});
  requests_.erase({session, request});
  if (known.call) calls_.at(*known.call).cancelled = true;
  for (BlockId block : known.held) EndLease(block, /*retire=*/false);
}

void ReferenceModel::Cancelled(SessionId session, CallId id) {
  const auto found = calls_.find(id);
  if (found != calls_.end() && found->second.session == session) found->second.cancelled = true;
}

void ReferenceModel::Closed(SessionId session, SegmentId id) {
  const auto at = segments_.find(id);
  Segment& segment = at->second;
  if (--segment.attached[session] == 0) segment.attached.erase(session);
  if (segment.attached.empty()) {
    for (const auto& [block, memory] : segment.blocks) Use(memory_.at(memory), false);
  }
  if (segment.writer == session && !segment.sealed) Forget(at);
}

// Nobody is attached to it, and nobody will be.
void ReferenceModel::Forget(std::map<SegmentId, Segment>::iterator at) {
  PoolSums& direct = pool_sums_.back();
  for (const auto& [block, id] : at->second.blocks) {
    Memory& memory = memory_.at(id);
    memory.held = false;
    memory.retired = true;
    direct.leased -= memory.bytes;
    --direct.blocks;
    segment_bytes_ -= memory.bytes;
  }
  segments_.erase(at);
}

void ReferenceModel::EndLease(BlockId block, bool retire) {
  const auto found = leases_.find(block);
  const Lease lease = found->second;
  leases_.erase(found);
  leases_of_[lease.session].erase(block);
  Memory& memory = memory_.at(lease.memory);
  memory.held = false;
  memory.retired = retire || *memory.pool == options_.pools.size();
  memory.released = ++releases_;
  memory.aged = true;
  if (!memory.retired) idle_.Released(IdleBlockOf(lease.memory));
  PoolSums& sums = pool_sums_[*memory.pool];
  sums.leased -= memory.bytes;
  sums.rounding -= memory.bytes - lease.size;
  --sums.blocks;
  Use(memory, false);
  const uint32_t heap = HeapOf(memory.block_class.memory_type);
  if (const auto idle = idle_in_clients_[heap].find(lease.session);
      idle != idle_in_clients_[heap].end()) {
    SetIdle(lease.session, heap, std::min(idle->second, HeldOn(lease.session, heap)));
  }
  const auto remembered = requests_.find({lease.session, lease.request});
  if (remembered == requests_.end()) return;
  remembered->second.held.erase(block);
  if (remembered->second.held.empty() && !remembered->second.call) requests_.erase(remembered);
}

void ReferenceModel::ReportedIdle(SessionId session, absl::Span<const IdleReport> reports) {
  for (uint32_t heap = 0; heap < device_.heaps.size(); ++heap) {
    Bytes believed;
    for (const IdleReport& report : reports) {
      if (report.heap == heap) believed = std::min(report.bytes, HeldOn(session, heap));
    }
    SetIdle(session, heap, believed);
  }
}

// What it has less of counts as given back.
void ReferenceModel::SetIdle(SessionId session, uint32_t heap, Bytes bytes) {
  Bytes& idle = idle_in_clients_[heap][session];
  if (bytes < idle) {
    Bytes& asked = asked_back_[{heap, session}].bytes;
    asked -= std::min(asked, idle - bytes);
  }
  idle = bytes;
  if (bytes == Bytes()) idle_in_clients_[heap].erase(session);
}

void ReferenceModel::Wanted(SessionId session, const GiveBackWanted& wanted) {
  EXPECT_EQ(wanted.deadline, now_ + options_.give_back_time);
  EXPECT_GT(wanted.bytes, Bytes());
  AskedBack& asked = asked_back_[{wanted.heap, session}];
  if (asked.until <= now_) asked.bytes = Bytes();
  asked.bytes += wanted.bytes;
  asked.until = wanted.deadline;
}

void ReferenceModel::Reconcile(const std::vector<SegmentStats>& segments) {
  std::set<SegmentId> left;
  for (const SegmentStats& segment : segments) left.insert(segment.id);
  for (auto it = segments_.begin(); it != segments_.end();) {
    const auto at = it++;
    if (left.contains(at->first)) continue;
    EXPECT_TRUE(at->second.attached.empty()) << "segment " << at->first << " is gone, but used";
    Forget(at);
  }
}

std::vector<BlockId> ReferenceModel::BlocksOf(SessionId session) const {
  const auto found = leases_of_.find(session);
  if (found == leases_of_.end()) return {};
  return {found->second.begin(), found->second.end()};
}

std::vector<SegmentId> ReferenceModel::SegmentsOf(SessionId session) const {
  std::vector<SegmentId> ids;
  for (const auto& [id, segment] : segments_) {
    if (segment.attached.contains(session)) ids.push_back(id);
  }
  return ids;
}

bool ReferenceModel::Fills(SessionId session, SegmentId id) const {
  const auto found = segments_.find(id);
  return found != segments_.end() && found->second.writer == session && !found->second.sealed;
}

const AllocateRequest* ReferenceModel::RequestOf(SessionId session, RequestId request) const {
  const auto found = requests_.find({session, request});
  return found == requests_.end() ? nullptr : &found->second.request;
}

std::optional<RequestId> ReferenceModel::AnyRequestOf(SessionId session) const {
  const auto found = requests_.lower_bound({session, RequestId()});
  if (found == requests_.end() || found->first.first != session) return std::nullopt;
  return found->first.second;
}

Bytes ReferenceModel::HeldOn(SessionId session, uint32_t heap) const {
  Bytes sum;
  const auto found = leases_of_.find(session);
  if (found == leases_of_.end()) return sum;
  for (BlockId block : found->second) {
    const Memory& memory = memory_.at(leases_.at(block).memory);
    if (HeapOf(memory.block_class.memory_type) == heap) sum += memory.bytes;
  }
  return sum;
}

}  // namespace heapbroker
