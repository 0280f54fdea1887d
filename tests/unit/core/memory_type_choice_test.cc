// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/memory_type_choice.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

MemoryTypeInfo Type(uint32_t heap, bool local, bool visible, bool coherent, bool cached) {
  MemoryTypeInfo type;
  type.heap = heap;
  type.device_local = local;
  type.host_visible = visible;
  type.host_coherent = coherent;
  type.host_cached = cached;
  type.exportable.opaque_fd = true;
  return type;
}

// A discrete card with a small window into its memory.
DeviceInfo Discrete() {
  DeviceInfo info;
  info.name = "discrete";
  info.heaps = {{GiB(8), true}, {GiB(16), false}, {MiB(256), true}};
  info.memory_types = {Type(0, true, false, false, false), Type(1, false, true, true, false),
                       Type(2, true, true, true, false), Type(1, false, true, true, true)};
  return info;
}

uint32_t Best(const DeviceInfo& device, MemoryKind kind) {
  const auto choices = ChooseMemoryTypes(device, kind, std::nullopt);
  EXPECT_THAT(choices, IsOk());
  return choices.ok() ? choices->types.front().memory_type : 99;
}

TEST(MemoryTypeChoiceTest, TakesTheTypeThatTheKindIsMeantFor) {
  const DeviceInfo info = Discrete();
  EXPECT_EQ(Best(info, MemoryKind::kDeviceLocal), 0u);
  EXPECT_EQ(Best(info, MemoryKind::kHostVisible), 1u);
  EXPECT_EQ(Best(info, MemoryKind::kDeviceLocalHostVisible), 2u);
  EXPECT_EQ(Best(info, MemoryKind::kHostCached), 3u);
}

TEST(MemoryTypeChoiceTest, LeavesOutTypesThatCannotBeExported) {
  DeviceInfo info = Discrete();
  info.memory_types[0].exportable = {};
  EXPECT_EQ(Best(info, MemoryKind::kDeviceLocal), 2u);
}

TEST(MemoryTypeChoiceTest, SaysWhichTypesADeviceHas) {
  DeviceInfo info = Discrete();
  info.memory_types.erase(info.memory_types.begin() + 2);
  const auto choice = ChooseMemoryTypes(info, MemoryKind::kDeviceLocalHostVisible, std::nullopt);
  EXPECT_THAT(choice, StatusIs(absl::StatusCode::kFailedPrecondition,
                               "exportable memory types there: 0 (device_local), 1 ("));
}

TEST(MemoryTypeChoiceTest, AUnifiedTypeServesEveryKind) {
  DeviceInfo info;
  info.memory_types = {Type(0, true, true, true, true)};
  for (MemoryKind kind : {MemoryKind::kDeviceLocal, MemoryKind::kHostVisible,
                          MemoryKind::kHostCached, MemoryKind::kDeviceLocalHostVisible}) {
    EXPECT_EQ(Best(info, kind), 0u);
  }
}

std::vector<uint32_t> TypesOf(const absl::StatusOr<MemoryTypeChoices>& choices) {
  EXPECT_THAT(choices, IsOk());
  std::vector<uint32_t> types;
  if (!choices.ok()) return types;
  for (const MemoryTypeChoice& choice : choices->types) types.push_back(choice.memory_type);
  return types;
}

TEST(MemoryTypeChoiceTest, ListsAllThatWillDoThoseWithMostOfWhatIsPreferredFirst) {
  const auto upload = ChooseMemoryTypes(Discrete(), MemoryKind::kHostVisible, std::nullopt);
  EXPECT_EQ(TypesOf(upload), (std::vector<uint32_t>{1, 3, 2}));
  EXPECT_GT(upload->types[0].tier, upload->types[1].tier);
  EXPECT_GT(upload->types[1].tier, upload->types[2].tier);
  EXPECT_EQ(TypesOf(ChooseMemoryTypes(Discrete(), MemoryKind::kDeviceLocal, std::nullopt)),
            (std::vector<uint32_t>{0, 2}));
}

TEST(MemoryTypeChoiceTest, PropertiesThatAreNamedAreAllThatMatters) {
  MemoryTypeWish wish;
  wish.host_visible = true;
  const auto choices = ChooseMemoryTypes(Discrete(), wish, std::nullopt);
  EXPECT_EQ(TypesOf(choices), (std::vector<uint32_t>{1, 2, 3}));
  for (const MemoryTypeChoice& choice : choices->types) EXPECT_EQ(choice.tier, 0);
  EXPECT_EQ(TypesOf(ChooseMemoryTypes(Discrete(), MemoryTypeWish(), std::nullopt)).size(), 4u);
}

TEST(MemoryTypeChoiceTest, AnExactTypeIsThatOneOrAnError) {
  DeviceInfo info = Discrete();
  EXPECT_EQ(TypesOf(ChooseMemoryTypes(info, MemoryTypeIndex{2}, std::nullopt)),
            (std::vector<uint32_t>{2}));
  for (uint32_t index : {4u, 32u, UINT32_MAX}) {
    EXPECT_THAT(ChooseMemoryTypes(info, MemoryTypeIndex{index}, std::nullopt),
                StatusIs(absl::StatusCode::kInvalidArgument, "has 4 memory types"));
  }
  info.memory_types[2].exportable = {};
  EXPECT_THAT(ChooseMemoryTypes(info, MemoryTypeIndex{2}, std::nullopt),
              StatusIs(absl::StatusCode::kFailedPrecondition, "no memory type 2"));
}

TEST(MemoryTypeChoiceTest, TakesAnOpaqueDescriptorWhereThereIsOneElseADmaBuf) {
  DeviceInfo info = Discrete();
  info.memory_types[1].exportable = {.opaque_fd = true, .dma_buf = true};
  info.memory_types[3].exportable = {.opaque_fd = false, .dma_buf = true};
  const auto either = ChooseMemoryTypes(info, MemoryKind::kHostVisible, std::nullopt);
  EXPECT_EQ(TypesOf(either), (std::vector<uint32_t>{1, 2})) << "all of one handle type";
  EXPECT_EQ(either->handle_type, HandleType::kOpaqueFd);
  const auto cached = ChooseMemoryTypes(info, MemoryTypeIndex{3}, std::nullopt);
  EXPECT_EQ(cached->handle_type, HandleType::kDmaBuf);
}

TEST(MemoryTypeChoiceTest, AHandleTypeThatWasNamedIsKeptTo) {
  DeviceInfo info = Discrete();
  info.memory_types[3].exportable = {.opaque_fd = true, .dma_buf = true};
  const auto choices = ChooseMemoryTypes(info, MemoryKind::kHostVisible, HandleType::kDmaBuf);
  EXPECT_EQ(TypesOf(choices), (std::vector<uint32_t>{3}));
  EXPECT_EQ(choices->handle_type, HandleType::kDmaBuf);
  EXPECT_THAT(ChooseMemoryTypes(info, MemoryKind::kDeviceLocal, HandleType::kDmaBuf),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "as dma-buf; exportable memory types there as that: 3 ("));
}

}  // namespace
}  // namespace heapbroker
