// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/turn_message.h"

#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

void SetWish(const MemoryWish& wish, v1::TraceTurn::Wish* message) {
  if (const auto* kind = std::get_if<MemoryKind>(&wish)) {
    message->set_kind(static_cast<v1::MemoryKind>(static_cast<int>(*kind) + 1));
  } else if (const auto* type = std::get_if<MemoryTypeIndex>(&wish)) {
    message->set_memory_type(type->index);
  } else {
    const auto& properties = std::get<MemoryTypeWish>(wish);
    v1::TraceTurn::Properties* const to = message->mutable_properties();
    to->set_device_local(properties.device_local);
    to->set_host_visible(properties.host_visible);
    to->set_host_coherent(properties.host_coherent);
    to->set_host_cached(properties.host_cached);
    to->set_host_local(properties.host_local);
    to->set_transient(properties.transient);
  }
}

v1::HandleType HandleTypeMessage(const std::optional<HandleType>& type) {
  if (!type) return v1::HANDLE_TYPE_UNSPECIFIED;
  return *type == HandleType::kDmaBuf ? v1::HANDLE_TYPE_DMA_BUF : v1::HANDLE_TYPE_OPAQUE_FD;
}

void SetBlock(const BlockRequest& block, v1::TraceTurn::Block* message) {
  message->set_size(block.size.count());
  message->set_alignment(block.alignment.count());
  SetWish(block.memory, message->mutable_wish());
  message->set_handle_type(HandleTypeMessage(block.handle_type));
  message->set_device_address(block.device_address);
  message->set_dedicated(block.dedicated);
  message->set_transient(block.transient);
  message->set_zeroed(block.zeroed);
}

// What a device may be out of but memory: the kinds that TraceCountLimit has.
bool IsCount(LimitKind limit) {
  return limit == LimitKind::kMaxAllocationCount || limit == LimitKind::kDescriptors ||
         limit == LimitKind::kMemoryMaps;
}

template <typename T>
void AddBlockIds(const std::vector<BlockId>& blocks, T* field) {
  for (const BlockId block : blocks) field->Add(block.value());
}

// Writes one turn into its field of the message.
struct TurnWriter {
  v1::TraceTurn& message;
  const absl::Time start;
  const NameHashKey& key;

  int64_t Since(absl::Time time) const { return absl::ToInt64Nanoseconds(time - start); }

  void operator()(const SessionAdded& turn) const {
    message.mutable_session_added()->set_session(turn.session.value());
    message.mutable_session_added()->set_uid(turn.tenant.uid());
  }
  void operator()(const SessionEnded& turn) const {
    message.mutable_session_ended()->set_session(turn.session.value());
  }
  void operator()(const AllocateAsked& turn) const {
    v1::TraceTurn::AllocateAsked* const to = message.mutable_allocate_asked();
    to->set_session(turn.session.value());
    to->set_call(turn.call.value());
    to->set_request_id(turn.request.request_id.value());
    to->set_priority(static_cast<uint32_t>(turn.request.priority));
    if (turn.request.wait_until) to->set_wait_until(Since(*turn.request.wait_until));
    for (const BlockRequest& block : turn.request.blocks) SetBlock(block, to->add_blocks());
  }
  void operator()(const BlocksReleased& turn) const {
    message.mutable_blocks_released()->set_session(turn.session.value());
    AddBlockIds(turn.blocks, message.mutable_blocks_released()->mutable_blocks());
  }
  void operator()(const RequestUndone& turn) const {
    message.mutable_request_undone()->set_session(turn.session.value());
    message.mutable_request_undone()->set_request_id(turn.request.value());
  }
  void operator()(const SegmentOpened& turn) const {
    v1::TraceTurn::SegmentOpened* const to = message.mutable_segment_opened();
    to->set_session(turn.session.value());
    to->set_call(turn.call.value());
    to->set_name_hash(HashName(key, turn.request.name));
    to->set_mode(static_cast<uint32_t>(turn.request.mode));
    to->set_size(turn.request.size.count());
    SetWish(turn.request.memory, to->mutable_wish());
    to->set_handle_type(HandleTypeMessage(turn.request.handle_type));
    if (turn.request.wait_until) to->set_wait_until(Since(*turn.request.wait_until));
  }
  void operator()(const SegmentWasSealed& turn) const {
    message.mutable_segment_sealed()->set_session(turn.session.value());
    message.mutable_segment_sealed()->set_segment(turn.segment.value());
  }
  void operator()(const SegmentClosed& turn) const {
    message.mutable_segment_closed()->set_session(turn.session.value());
    message.mutable_segment_closed()->set_segment(turn.segment.value());
  }
  void operator()(const CallCancelled& turn) const {
    message.mutable_call_cancelled()->set_session(turn.session.value());
    message.mutable_call_cancelled()->set_call(turn.call.value());
  }
  void operator()(const IdleReported& turn) const {
    message.mutable_idle_reported()->set_session(turn.session.value());
    for (const IdleReport& report : turn.reports) {
      v1::TraceTurn::IdleReported::Heap* const heap = message.mutable_idle_reported()->add_heaps();
      heap->set_heap_index(report.heap);
      heap->set_bytes(report.bytes.count());
    }
  }
  void operator()(const HeapsRead& turn) const {
    message.mutable_heaps_read();
    for (const HeapReport& report : turn.reports) {
      v1::TraceTurn::HeapsRead::HeapReport* const heap = message.mutable_heaps_read()->add_heaps();
      heap->set_budget(report.budget.count());
      heap->set_usage(report.usage.count());
    }
  }
  void operator()(const Trimmed& turn) const {
    if (turn.request.pool) message.mutable_trimmed()->set_pool(*turn.request.pool);
    message.mutable_trimmed()->set_target(turn.request.target.count());
    message.mutable_trimmed()->set_segments(turn.request.segments);
  }
  void operator()(const Ticked&) const { message.mutable_ticked(); }
  void operator()(const JobFilled& turn) const {
    v1::TraceTurn::JobFilled* const to = message.mutable_job_filled();
    for (const DeviceAnswer& answer : turn.answers) {
      v1::TraceTurn::JobFilled::Answer* const one = to->add_answers();
      one->set_required(answer.required.count());
      one->set_code(static_cast<uint32_t>(answer.code));
      if (answer.limit && IsCount(*answer.limit)) {
        one->set_limit(static_cast<uint32_t>(*answer.limit));
      }
    }
    to->set_took(absl::ToInt64Nanoseconds(turn.took));
    to->set_over(turn.over);
  }
  void operator()(const JobFreed& turn) const {
    message.mutable_job_freed()->set_block(turn.block.value());
    message.mutable_job_freed()->set_took(absl::ToInt64Nanoseconds(turn.took));
  }
  void operator()(const CallAnswered& turn) const {
    v1::TraceTurn::CallAnswered* const to = message.mutable_call_answered();
    to->set_call(turn.call.value());
    AddBlockIds(turn.blocks, to->mutable_blocks());
    to->set_segment(turn.segment.value());
    to->set_code(static_cast<uint32_t>(turn.code));
  }
};

absl::Status NoMeaning(absl::string_view field, uint64_t value) {
  return absl::InvalidArgumentError(
      absl::StrCat("a turn's ", field, " is ", value, ", which has no meaning"));
}

absl::StatusOr<MemoryWish> ParseWish(const v1::TraceTurn::Wish& message) {
  switch (message.wish_case()) {
    case v1::TraceTurn::Wish::kMemoryType:
      return MemoryWish(MemoryTypeIndex{message.memory_type()});
    case v1::TraceTurn::Wish::kProperties: {
      const v1::TraceTurn::Properties& from = message.properties();
      return MemoryWish(MemoryTypeWish{from.device_local(), from.host_visible(),
                                       from.host_coherent(), from.host_cached(), from.host_local(),
                                       from.transient()});
    }
    case v1::TraceTurn::Wish::kKind: {
      const int kind = message.kind() - 1;
      if (kind < 0 || kind > static_cast<int>(MemoryKind::kDeviceLocalHostVisible)) {
        return NoMeaning("kind", static_cast<uint64_t>(message.kind()));
      }
      return MemoryWish(static_cast<MemoryKind>(kind));
    }
    case v1::TraceTurn::Wish::WISH_NOT_SET:
      break;
  }
  return MemoryWish(MemoryKind::kDeviceLocal);
}

absl::StatusOr<std::optional<HandleType>> ParseHandleType(v1::HandleType type) {
  switch (type) {
    case v1::HANDLE_TYPE_UNSPECIFIED:
      return std::optional<HandleType>();
    case v1::HANDLE_TYPE_OPAQUE_FD:
      return std::optional<HandleType>(HandleType::kOpaqueFd);
    case v1::HANDLE_TYPE_DMA_BUF:
      return std::optional<HandleType>(HandleType::kDmaBuf);
    default:
      return NoMeaning("handle_type", static_cast<uint64_t>(type));
  }
}

absl::StatusOr<BlockRequest> ParseBlock(const v1::TraceTurn::Block& message) {
  BlockRequest block;
  block.size = Bytes(message.size());
  block.alignment = Bytes(message.alignment());
  HB_ASSIGN_OR_RETURN(block.memory, ParseWish(message.wish()));
  HB_ASSIGN_OR_RETURN(block.handle_type, ParseHandleType(message.handle_type()));
  block.device_address = message.device_address();
  block.dedicated = message.dedicated();
  block.transient = message.transient();
  block.zeroed = message.zeroed();
  return block;
}

absl::StatusOr<absl::StatusCode> ParseCode(uint32_t code) {
  if (code > static_cast<uint32_t>(absl::StatusCode::kUnauthenticated)) {
    return NoMeaning("code", code);
  }
  return static_cast<absl::StatusCode>(code);
}

template <typename T>
std::vector<BlockId> ParseBlockIds(const T& field) {
  std::vector<BlockId> blocks;
  for (const uint64_t block : field) blocks.emplace_back(block);
  return blocks;
}

absl::StatusOr<Turn> ParseAllocate(const v1::TraceTurn::AllocateAsked& message, absl::Time start) {
  AllocateAsked turn{SessionId(message.session()), CallId(message.call()), {}};
  turn.request.request_id = RequestId(message.request_id());
  if (message.priority() >= kPriorityCount) return NoMeaning("priority", message.priority());
  turn.request.priority = static_cast<Priority>(message.priority());
  if (message.has_wait_until()) {
    turn.request.wait_until = start + absl::Nanoseconds(message.wait_until());
  }
  for (const v1::TraceTurn::Block& block : message.blocks()) {
    HB_ASSIGN_OR_RETURN(BlockRequest request, ParseBlock(block));
    turn.request.blocks.push_back(request);
  }
  return turn;
}

absl::StatusOr<Turn> ParseOpen(const v1::TraceTurn::SegmentOpened& message, absl::Time start) {
  SegmentOpened turn{SessionId(message.session()), CallId(message.call()), {}};
  turn.request.name = absl::StrCat(absl::Hex(message.name_hash(), absl::kZeroPad16));
  if (message.mode() > static_cast<uint32_t>(OpenMode::kAttachWait)) {
    return NoMeaning("mode", message.mode());
  }
  turn.request.mode = static_cast<OpenMode>(message.mode());
  turn.request.size = Bytes(message.size());
  HB_ASSIGN_OR_RETURN(turn.request.memory, ParseWish(message.wish()));
  HB_ASSIGN_OR_RETURN(turn.request.handle_type, ParseHandleType(message.handle_type()));
  if (message.has_wait_until()) {
    turn.request.wait_until = start + absl::Nanoseconds(message.wait_until());
  }
  return turn;
}

absl::StatusOr<Turn> ParseJobFilled(const v1::TraceTurn::JobFilled& message) {
  JobFilled turn;
  for (const v1::TraceTurn::JobFilled::Answer& from : message.answers()) {
    DeviceAnswer answer;
    answer.required = Bytes(from.required());
    HB_ASSIGN_OR_RETURN(answer.code, ParseCode(from.code()));
    if (from.limit() != 0) {
      answer.limit = static_cast<LimitKind>(from.limit());
      if (from.limit() > UINT8_MAX || !IsCount(*answer.limit)) {
        return NoMeaning("limit", from.limit());
      }
    }
    turn.answers.push_back(answer);
  }
  turn.took = absl::Nanoseconds(message.took());
  turn.over = message.over();
  return turn;
}

Turn ParseHeaps(const v1::TraceTurn::HeapsRead& message) {
  HeapsRead turn;
  for (const v1::TraceTurn::HeapsRead::HeapReport& heap : message.heaps()) {
    turn.reports.push_back({Bytes(heap.budget()), Bytes(heap.usage())});
  }
  return turn;
}

absl::StatusOr<Turn> ParseCallAnswered(const v1::TraceTurn::CallAnswered& message) {
  CallAnswered turn;
  turn.call = CallId(message.call());
  turn.blocks = ParseBlockIds(message.blocks());
  turn.segment = SegmentId(message.segment());
  HB_ASSIGN_OR_RETURN(turn.code, ParseCode(message.code()));
  return turn;
}

Turn ParseIdle(const v1::TraceTurn::IdleReported& message) {
  IdleReported turn{SessionId(message.session()), {}};
  for (const v1::TraceTurn::IdleReported::Heap& heap : message.heaps()) {
    turn.reports.push_back({heap.heap_index(), Bytes(heap.bytes())});
  }
  return turn;
}

Turn ParseTrim(const v1::TraceTurn::Trimmed& message) {
  Trimmed turn;
  if (message.has_pool()) turn.request.pool = message.pool();
  turn.request.target = Bytes(message.target());
  turn.request.segments = message.segments();
  return turn;
}

absl::StatusOr<Turn> ParseAny(const v1::TraceTurn& message, absl::Time start) {
  switch (message.turn_case()) {
    case v1::TraceTurn::kSessionAdded:
      return Turn(SessionAdded{SessionId(message.session_added().session()),
                               TenantId(message.session_added().uid())});
    case v1::TraceTurn::kSessionEnded:
      return Turn(SessionEnded{SessionId(message.session_ended().session())});
    case v1::TraceTurn::kAllocateAsked:
      return ParseAllocate(message.allocate_asked(), start);
    case v1::TraceTurn::kBlocksReleased:
      return Turn(BlocksReleased{SessionId(message.blocks_released().session()),
                                 ParseBlockIds(message.blocks_released().blocks())});
    case v1::TraceTurn::kRequestUndone:
      return Turn(RequestUndone{SessionId(message.request_undone().session()),
                                RequestId(message.request_undone().request_id())});
    case v1::TraceTurn::kSegmentOpened:
      return ParseOpen(message.segment_opened(), start);
    case v1::TraceTurn::kSegmentSealed:
      return Turn(SegmentWasSealed{SessionId(message.segment_sealed().session()),
                                   SegmentId(message.segment_sealed().segment())});
    case v1::TraceTurn::kSegmentClosed:
      return Turn(SegmentClosed{SessionId(message.segment_closed().session()),
                                SegmentId(message.segment_closed().segment())});
    case v1::TraceTurn::kCallCancelled:
      return Turn(CallCancelled{SessionId(message.call_cancelled().session()),
                                CallId(message.call_cancelled().call())});
    case v1::TraceTurn::kIdleReported:
      return ParseIdle(message.idle_reported());
    case v1::TraceTurn::kHeapsRead:
      return ParseHeaps(message.heaps_read());
    case v1::TraceTurn::kTrimmed:
      return ParseTrim(message.trimmed());
    case v1::TraceTurn::kTicked:
      return Turn(Ticked{});
    case v1::TraceTurn::kJobFilled:
      return ParseJobFilled(message.job_filled());
    case v1::TraceTurn::kJobFreed:
      return Turn(JobFreed{BlockId(message.job_freed().block()),
                           absl::Nanoseconds(message.job_freed().took())});
    case v1::TraceTurn::kCallAnswered:
      return ParseCallAnswered(message.call_answered());
    case v1::TraceTurn::TURN_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a turn that this program does not know");
}

}  // namespace

v1::TraceTurn TurnMessage(const TracedTurn& turn, absl::Time start, const NameHashKey& key) {
  v1::TraceTurn message;
  message.set_device(turn.device);
  message.set_sequence(turn.turn.sequence);
  message.set_time(absl::ToInt64Nanoseconds(turn.turn.time - start));
  std::visit(TurnWriter{message, start, key}, turn.turn.turn);
  return message;
}

absl::StatusOr<TracedTurn> ParseTurn(const v1::TraceTurn& message, absl::Time start) {
  TracedTurn turn;
  turn.device = message.device();
  turn.turn.sequence = message.sequence();
  turn.turn.time = start + absl::Nanoseconds(message.time());
  HB_ASSIGN_OR_RETURN(turn.turn.turn, ParseAny(message, start));
  return turn;
}

}  // namespace heapbroker
