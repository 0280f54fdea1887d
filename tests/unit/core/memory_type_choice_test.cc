// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/memory_type_choice.h"

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

}  // namespace
}  // namespace heapbroker
