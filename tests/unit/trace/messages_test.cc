// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "daemon/trace/header_message.h"
#include "daemon/trace/turn_message.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/trace/traces.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(400000);

// A turn that was written and read, as it would be written again.
v1::TraceTurn Again(const v1::TraceTurn& message) {
  const auto parsed = ParseTurn(message, kStart);
  EXPECT_THAT(parsed, IsOk());
  return parsed.ok() ? TurnMessage(*parsed, kStart, NameHashKey{1, 2}) : v1::TraceTurn();
}

std::vector<Turn> OneOfEach() {
  BlockRequest block;
  block.size = MiB(3);
  block.alignment = Bytes(256);
  block.memory = MemoryTypeWish{.host_visible = true, .host_cached = true};
  block.handle_type = HandleType::kDmaBuf;
  block.device_address = block.dedicated = block.transient = block.zeroed = true;
  BlockRequest exact;
  exact.size = Bytes(1);
  exact.memory = MemoryTypeIndex{7};
  BlockRequest kind;
  kind.size = Bytes(2);
  kind.memory = MemoryKind::kDeviceLocalHostVisible;
  AllocateRequest request{
      RequestId(5), Priority::kHigh, kStart + absl::Seconds(3), {block, exact, kind}};
  OpenSegmentRequest open;
  open.name = "weights";
  open.mode = OpenMode::kAttachWait;
  open.size = GiB(1);
  open.memory = MemoryKind::kHostCached;
  open.handle_type = HandleType::kOpaqueFd;
  open.wait_until = kStart + absl::Seconds(4);
  return {SessionAdded{SessionId(1), kBob},
          SessionEnded{SessionId(1)},
          AllocateAsked{SessionId(1), CallId(2), request},
          BlocksReleased{SessionId(1), {BlockId(64), BlockId(128)}},
          RequestUndone{SessionId(1), RequestId(5)},
          SegmentOpened{SessionId(1), CallId(3), open},
          SegmentWasSealed{SessionId(1), SegmentId(4)},
          SegmentClosed{SessionId(1), SegmentId(4)},
          CallCancelled{SessionId(1), CallId(3)},
          IdleReported{SessionId(1), {{1, MiB(2)}, {2, MiB(3)}}},
          Trimmed{{"device_local (type 1)", MiB(1), true}},
          Trimmed{},
          Ticked{},
          HeapsRead{{{GiB(1), MiB(5)}}},
          JobFilled{{{MiB(1)},
                     {},
                     {Bytes(), StatusCode::kResourceExhausted, LimitKind::kDescriptors},
                     {Bytes(), StatusCode::kUnavailable}},
                    absl::Microseconds(12),
                    true},
          JobFreed{BlockId(64), absl::Microseconds(13)},
          CallAnswered{CallId(2), {BlockId(64)}, SegmentId(4), StatusCode::kResourceExhausted}};
}

TEST(TurnMessageTest, EveryTurnIsReadAsItWasWritten) {
  const std::vector<Turn> turns = OneOfEach();
  std::set<size_t> kinds;
  for (const Turn& turn : turns) {
    kinds.insert(turn.index());
    const v1::TraceTurn message =
        TurnMessage({3, {17, kStart + absl::Seconds(9), turn}}, kStart, NameHashKey{1, 2});
    v1::TraceTurn again = Again(message);
    if (message.has_segment_opened()) {
      // Its name is a hash after that, and has another one.
      EXPECT_NE(again.segment_opened().name_hash(), message.segment_opened().name_hash());
      again.mutable_segment_opened()->set_name_hash(message.segment_opened().name_hash());
    }
    EXPECT_EQ(again.DebugString(), message.DebugString());
    EXPECT_EQ(ParseTurn(message, kStart)->turn.turn.index(), turn.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<Turn>);
}

TEST(TurnMessageTest, NamesOfSegmentsAreNotWritten) {
  OpenSegmentRequest open;
  open.name = "a secret name";
  const v1::TraceTurn message = TurnMessage(
      {0, {1, kStart, SegmentOpened{SessionId(1), CallId(1), open}}}, kStart, RandomNameHashKey());
  EXPECT_EQ(message.SerializeAsString().find("secret"), std::string::npos);
}

TEST(TurnMessageTest, ValuesWithoutMeaningAreRefused) {
  v1::TraceTurn message;
  EXPECT_THAT(ParseTurn(message, kStart), StatusIs(StatusCode::kInvalidArgument, "turn"));
  message.mutable_call_answered()->set_code(17);
  EXPECT_THAT(ParseTurn(message, kStart), StatusIs(StatusCode::kInvalidArgument, "code is 17"));
  message.mutable_job_filled()->add_answers()->set_limit(1);
  EXPECT_THAT(ParseTurn(message, kStart), StatusIs(StatusCode::kInvalidArgument, "limit is 1"));
  message.mutable_job_filled()->mutable_answers(0)->set_limit(259);
  EXPECT_THAT(ParseTurn(message, kStart), StatusIs(StatusCode::kInvalidArgument, "limit is 259"));
  message.mutable_allocate_asked()->set_priority(3);
  EXPECT_THAT(ParseTurn(message, kStart), StatusIs(StatusCode::kInvalidArgument, "priority"));
  message.mutable_segment_opened()->set_mode(3);
  EXPECT_THAT(ParseTurn(message, kStart), StatusIs(StatusCode::kInvalidArgument, "mode"));
  message.mutable_allocate_asked()->add_blocks()->mutable_wish()->set_kind(v1::MemoryKind(9));
  EXPECT_THAT(ParseTurn(message, kStart), StatusIs(StatusCode::kInvalidArgument, "kind"));
}

TracedDevice Elaborate() {
  TracedDevice device = TracedDeviceOf(MiB(700));
  device.info.heaps.push_back({GiB(8), false, GiB(7)});
  MemoryTypeInfo host;
  host.heap = 1;
  host.host_visible = true;
  host.property_flags = 2;
  host.exportable = {.opaque_fd = false, .dma_buf = true};
  device.info.memory_types.push_back(host);
  device.info.dedicated_only = {.opaque_fd = false, .dma_buf = true};
  device.info.device_addresses = true;
  AdmissionOptions& admission = device.options.admission;
  admission.heaps.push_back({GiB(6), 900});
  admission.count_limits.push_back({LimitKind::kDescriptors, 100});
  admission.pools.push_back({"host_visible (type 1)", 1, true, true, {MiB(1), MiB(2), 3}});
  admission.matching = {Matching::kExact, 250};
  admission.idle_ttl = absl::Seconds(90);
  admission.head_timeout = absl::Seconds(1);
  admission.give_back_time = absl::Milliseconds(100);
  device.options.tenants = TenantRule::kFirstTenantOnly;
  return device;
}

TEST(HeaderMessageTest, IsReadAsItWasWritten) {
  TraceStart start = StartOf({TracedDeviceOf(MiB(10)), Elaborate()});
  start.comment = "made by hand";
  const v1::TraceHeader message = HeaderMessage(start);
  ASSERT_OK_AND_ASSIGN(const TraceStart again, ParseHeader(message));
  EXPECT_EQ(again.time, start.time);
  EXPECT_EQ(again.devices[1].info.index, 1u);
  EXPECT_EQ(HeaderMessage(again).DebugString(), message.DebugString());
}

TEST(HeaderMessageTest, AnotherFormatSaysWhichVersionToUse) {
  v1::TraceHeader message = HeaderMessage(StartOf({TracedDeviceOf(MiB(10))}));
  message.set_format(kTraceFormat + 1);
  EXPECT_THAT(ParseHeader(message), StatusIs(StatusCode::kFailedPrecondition, "0.0.test"));
}

TEST(HeaderMessageTest, WhatAReplayReliesOnIsChecked) {
  const v1::TraceHeader good = HeaderMessage(StartOf({Elaborate()}));
  using Damage = std::function<void(v1::TraceDevice&)>;
  const std::vector<Damage> damages = {
      [](v1::TraceDevice& device) { device.clear_heaps(); },
      [](v1::TraceDevice& device) { device.mutable_heaps()->RemoveLast(); },
      [](v1::TraceDevice& device) { device.clear_memory_types(); },
      [](v1::TraceDevice& device) { device.mutable_memory_types(0)->set_heap_index(2); },
      [](v1::TraceDevice& device) { device.mutable_pools(0)->set_memory_type(2); },
      [](v1::TraceDevice& device) { device.clear_count_limits(); },
      [](v1::TraceDevice& device) { device.mutable_count_limits(0)->set_kind(0); },
      [](v1::TraceDevice& device) { device.set_max_allocation_size(0); },
      [](v1::TraceDevice& device) { device.set_slack_per_mille(1001); },
      [](v1::TraceDevice& device) { device.set_idle_ttl(-1); },
  };
  ASSERT_THAT(ParseHeader(good), IsOk());
  for (size_t i = 0; i < damages.size(); ++i) {
    v1::TraceHeader bad = good;
    damages[i](*bad.mutable_devices(0));
    EXPECT_THAT(ParseHeader(bad), StatusIs(StatusCode::kInvalidArgument, "header")) << i;
  }
  v1::TraceHeader none = good;
  none.clear_devices();
  EXPECT_THAT(ParseHeader(none), StatusIs(StatusCode::kInvalidArgument, "devices"));
}

}  // namespace
}  // namespace heapbroker
