// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Whether a segment that exists is what its next opener asks for.
#include <optional>
#include <string>
#include <variant>

#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

// Device memory, a window into it, and memory for the host that only some of it caches.
DeviceInfo Discrete() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.heaps.push_back({GiB(1), false});
  info.memory_types.assign(4, info.memory_types[0]);
  const auto set = [&](uint32_t type, uint32_t heap, bool device_local, bool visible, bool cached) {
    MemoryTypeInfo& to = info.memory_types[type];
    to.heap = heap;
    to.device_local = device_local;
    to.host_visible = to.host_coherent = visible;
    to.host_cached = cached;
    to.exportable = {.opaque_fd = true, .dma_buf = true};
  };
  set(0, 0, true, false, false);
  set(1, 0, true, true, false);
  set(2, 1, false, true, false);
  set(3, 1, false, true, true);
  return info;
}

class SegmentKindTest : public CoreTest {
 protected:
  void SetUp() override {
    Start(MiB(512), Discrete());
    writer_ = NewSession(kAlice);
    reader_ = NewSession(kAlice);
  }
  static OpenSegmentRequest Create(MemoryWish memory,
                                   std::optional<HandleType> handle_type = std::nullopt) {
    OpenSegmentRequest request{"weights", OpenMode::kCreateOrAttach, MiB(1), memory};
    request.handle_type = handle_type;
    return request;
  }
  SegmentView MakeAs(const OpenSegmentRequest& request) {
    const CallId call = NewCall();
    EXPECT_THAT(broker_->OpenSegment(writer_, call, request), IsOk());
    executor_.RunAll();
    const absl::StatusOr<SegmentView> view = events_.segment(call);
    EXPECT_THAT(view, IsOk());
    if (!view.ok()) return {};
    EXPECT_THAT(broker_->SealSegment(writer_, view->id, {}), IsOk());
    return *view;
  }
  absl::Status OpenAs(const OpenSegmentRequest& request) {
    return broker_->OpenSegment(reader_, NewCall(), request).status();
  }

  SessionId writer_, reader_;
};

TEST_F(SegmentKindTest, AnotherHandleTypeIsRefusedAndBothAreTold) {
  MakeAs(Create(MemoryKind::kDeviceLocal));
  const absl::Status refused = OpenAs(Create(MemoryKind::kDeviceLocal, HandleType::kDmaBuf));
  EXPECT_THAT(refused,
              StatusIs(StatusCode::kAlreadyExists, "(memory types 0, 1) as opaque descriptor"));
  EXPECT_THAT(refused, StatusIs(StatusCode::kAlreadyExists, "(memory types 0, 1) as dma-buf"));
  EXPECT_THAT(OpenAs(Create(MemoryKind::kDeviceLocal, HandleType::kOpaqueFd)), IsOk());
}

TEST_F(SegmentKindTest, ItIsComparedBeforeTheMemoryIsThere) {
  ASSERT_THAT(broker_->OpenSegment(writer_, NewCall(), Create(MemoryKind::kDeviceLocal)), IsOk());
  EXPECT_THAT(OpenAs(Create(MemoryKind::kDeviceLocal, HandleType::kDmaBuf)),
              StatusIs(StatusCode::kAlreadyExists, "dma-buf"));
}

TEST_F(SegmentKindTest, WhoNamesNoHandleTypeTakesWhatThereIs) {
  const SegmentView made = MakeAs(Create(MemoryKind::kDeviceLocal, HandleType::kDmaBuf));
  EXPECT_EQ(made.blocks.at(0).block_class.handle_type, HandleType::kDmaBuf);
  EXPECT_THAT(OpenAs(Create(MemoryKind::kDeviceLocal)), IsOk());
}

TEST_F(SegmentKindTest, TwoSpellingsOfTheSameMemoryAreTheSame) {
  MakeAs(Create(MemoryKind::kDeviceLocal));
  EXPECT_THAT(OpenAs(Create(MemoryTypeWish{.device_local = true})), IsOk());
}

TEST_F(SegmentKindTest, TwoMeaningsOfOneNameAreToldApart) {
  // The kind prefers cached memory, the properties must be there.
  MakeAs(Create(MemoryKind::kHostCached));
  const absl::Status refused = OpenAs(Create(MemoryTypeWish{.host_cached = true}));
  EXPECT_THAT(refused, StatusIs(StatusCode::kAlreadyExists, "host_cached (memory types 3, 1, 2)"));
  EXPECT_THAT(refused, StatusIs(StatusCode::kAlreadyExists, "host_cached (memory type 3)"));
}

}  // namespace
}  // namespace heapbroker
