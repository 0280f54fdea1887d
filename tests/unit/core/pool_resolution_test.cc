// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "daemon/core/pool_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Specs = std::vector<PoolSpec>;

MemoryTypeInfo Type(absl::string_view properties) {
  const MemoryTypeWish wish = ParseMemoryTypeWish(properties).value();
  MemoryTypeInfo type;
  type.device_local = wish.device_local;
  type.host_visible = wish.host_visible;
  type.host_coherent = wish.host_coherent;
  type.host_cached = wish.host_cached;
  type.exportable.opaque_fd = true;
  return type;
}

// A discrete card with a small window into its memory; type 0 is for images only.
DeviceInfo Discrete() {
  DeviceInfo info;
  info.name = "discrete";
  info.memory_types = {Type("device_local"), Type("device_local"),
                       Type("host_visible|host_coherent"),
                       Type("device_local|host_visible|host_coherent"),
                       Type("host_visible|host_coherent|host_cached")};
  info.memory_types[0].exportable = {};
  return info;
}

DeviceInfo Unified() {
  DeviceInfo info;
  info.index = 1;
  info.name = "unified";
  info.memory_types = {Type("device_local|host_visible|host_coherent|host_cached")};
  return info;
}

Specs Parsed(absl::string_view text) {
  const absl::StatusOr<Specs> specs = ParsePoolSpecs(text);
  EXPECT_THAT(specs, IsOk()) << text;
  return specs.value_or(Specs());
}

ResolvedPools Resolve(absl::string_view text, const DeviceInfo& device) {
  return ResolvePools(Parsed(text), device);
}

std::vector<std::string> NamesOf(const ResolvedPools& resolved) {
  std::vector<std::string> names;
  for (const ResolvedPool& pool : resolved.pools) names.push_back(pool.name);
  return names;
}

absl::Status Check(absl::string_view text, const std::vector<DeviceInfo>& devices) {
  const Specs specs = Parsed(text);
  std::vector<ResolvedPools> resolved;
  for (const DeviceInfo& device : devices) resolved.push_back(ResolvePools(specs, device));
  return CheckEverySpecMatches(specs, resolved);
}

TEST(PoolResolutionTest, TakesTheFirstExportableTypeWithAllNamedProperties) {
  EXPECT_THAT(NamesOf(Resolve("device_local", Discrete())), ElementsAre("device_local (type 1)"));
  EXPECT_THAT(NamesOf(Resolve("host_visible", Discrete())), ElementsAre("host_visible (type 2)"));
  EXPECT_THAT(NamesOf(Resolve("device_local|host_visible", Discrete())),
              ElementsAre("device_local|host_visible (type 3)"));
  EXPECT_THAT(NamesOf(Resolve("device_local;mapping", Discrete())),
              ElementsAre("device_local;mapping (type 3)"));
  EXPECT_THAT(NamesOf(Resolve("host_cached", Discrete())), ElementsAre("host_cached (type 4)"));
  EXPECT_THAT(NamesOf(Resolve("host_local", Discrete())), ElementsAre("host_local (type 2)"));
  EXPECT_THAT(NamesOf(Resolve("optimal", Discrete())), ElementsAre("optimal (type 1)"));
}

TEST(PoolResolutionTest, EveryTypeMakesAPoolOfEachExportableTypeInDeviceOrder) {
  const ResolvedPools resolved = Resolve("", Discrete());
  EXPECT_THAT(NamesOf(resolved), ElementsAre("type 1", "type 2", "type 3", "type 4"));
  for (size_t i = 0; i < resolved.pools.size(); ++i) {
    EXPECT_EQ(resolved.pools[i].memory_type, i + 1);
    EXPECT_TRUE(resolved.pools[i].every_type);
    EXPECT_FALSE(resolved.pools[i].transient);
  }
  EXPECT_THAT(resolved.matched, ElementsAre(true));
  EXPECT_THAT(resolved.notes, IsEmpty());
}

TEST(PoolResolutionTest, AStarWithAUsageTakesEveryTypeThatHasIt) {
  EXPECT_THAT(NamesOf(Resolve("*;mapping", Discrete())), ElementsAre("type 2", "type 3", "type 4"));
}

TEST(PoolResolutionTest, PoolsOfEqualKeysHaveNamesOfTheirOwn) {
  EXPECT_THAT(NamesOf(Resolve("device_local=1mib,Device_Local =2mib,host_cached,device_local=3mib",
                              Discrete())),
              ElementsAre("device_local (type 1)", "device_local (type 1) #2",
                          "host_cached (type 4)", "device_local (type 1) #3"));
  EXPECT_THAT(NamesOf(Resolve("*=1mib,*=2mib", Unified())), ElementsAre("type 0", "type 0 #2"));
}

TEST(PoolResolutionTest, KeepsTheOrderOfTwoPoolsOfOneType) {
  const ResolvedPools resolved =
      Resolve("device_local=100mib;*;10,device_local=1gib;*;1", Discrete());
  ASSERT_EQ(resolved.pools.size(), 2u);
  EXPECT_EQ(resolved.pools[0].limits.max_allocation_size, MiB(100));
  EXPECT_EQ(resolved.pools[0].limits.max_free_allocation_count, 10u);
  EXPECT_EQ(resolved.pools[1].limits.max_allocation_size, GiB(1));
  EXPECT_EQ(resolved.pools[1].limits.max_free_allocation_count, 1u);
  EXPECT_THAT(resolved.notes, IsEmpty());
}

TEST(PoolResolutionTest, NotesAPoolThatIsNeverReached) {
  const ResolvedPools resolved =
      Resolve("device_local=1gib;*;1,device_local=100mib;*;10", Discrete());
  ASSERT_EQ(resolved.pools.size(), 2u);
  EXPECT_EQ(resolved.pools[0].limits.max_allocation_size, GiB(1));
  EXPECT_EQ(resolved.pools[1].limits.max_allocation_size, MiB(100));
  ASSERT_EQ(resolved.notes.size(), 1u);
  EXPECT_THAT(resolved.notes[0], HasSubstr("\"device_local (type 1) #2\" is never reached"));
}

TEST(PoolResolutionTest, APoolBehindOneThatCanBeFullOrIsForFewerRequestsIsReached) {
  for (const char* text :
       {"device_local=1gib;2gib;1,device_local=100mib", "device_local|transient,device_local",
        "device_local,*", "device_local,host_visible"}) {
    EXPECT_THAT(Resolve(text, Discrete()).notes, IsEmpty()) << text;
  }
}

TEST(PoolResolutionTest, ATransientKeyMarksItsPool) {
  const ResolvedPools resolved = Resolve("transient|device_local,device_local", Discrete());
  ASSERT_EQ(resolved.pools.size(), 2u);
  EXPECT_TRUE(resolved.pools[0].transient);
  EXPECT_EQ(resolved.pools[0].memory_type, 1u);
  EXPECT_FALSE(resolved.pools[1].transient);
}

TEST(PoolResolutionTest, CarriesUnboundedLimits) {
  const ResolvedPools resolved = Resolve("unbounded", Unified());
  ASSERT_EQ(resolved.pools.size(), 1u);
  EXPECT_EQ(resolved.pools[0].limits.max_free_allocation_count, UINT64_MAX);
}

TEST(PoolResolutionTest, ServesDevicesOfMoreThanEightMemoryTypes) {
  DeviceInfo many = Unified();
  many.memory_types.assign(32, many.memory_types[0]);
  for (const char* text : {"", "unbounded"}) {
    const ResolvedPools resolved = Resolve(text, many);
    ASSERT_EQ(resolved.pools.size(), 32u);
    EXPECT_EQ(resolved.pools[31].name, "type 31");
  }
}

TEST(PoolResolutionTest, AKeyThatOneDeviceLacksIsANoteThere) {
  const ResolvedPools discrete = Resolve("device_local|host_cached,device_local", Discrete());
  EXPECT_THAT(discrete.matched, ElementsAre(false, true));
  ASSERT_EQ(discrete.notes.size(), 1u);
  EXPECT_THAT(discrete.notes[0],
              HasSubstr("pool \"device_local|host_cached\" is unused on device 0 (discrete)"));
  EXPECT_THAT(NamesOf(discrete), ElementsAre("device_local (type 1)"));
  EXPECT_THAT(Check("device_local|host_cached,device_local", {Discrete(), Unified()}), IsOk());
}

TEST(PoolResolutionTest, AKeyThatNoDeviceHasIsAnErrorThatTellsWhatTheyHave) {
  const absl::Status status =
      Check("device_local,device_local|host_cached", {Discrete(), Discrete()});
  constexpr auto kCode = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(status, StatusIs(kCode, "pool \"device_local|host_cached\": no device has"));
  EXPECT_THAT(status, StatusIs(kCode,
                               "device 0 (discrete): device_local, host_visible|host_coherent, "
                               "device_local|host_visible|host_coherent, "
                               "host_visible|host_coherent|host_cached"));
  EXPECT_THAT(status, StatusIs(kCode, "of device_local, host_local, host_visible, host_coherent"));
}

TEST(PoolResolutionTest, AMatchOfOneSpecDoesNotExcuseAnother) {
  // Each device has what the other one lacks, and neither has a cached window.
  EXPECT_THAT(Check("host_local,device_local|host_cached", {Discrete(), Unified()}), IsOk());
  EXPECT_THAT(Check("host_local,device_local|host_cached", {Discrete()}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "\"device_local|host_cached\""));
}

TEST(PoolResolutionTest, HostLocalIsUnusedWithANoteWhereMemoryIsUnified) {
  const ResolvedPools unified = Resolve("host_local,device_local", Unified());
  EXPECT_THAT(unified.matched, ElementsAre(false, true));
  ASSERT_EQ(unified.notes.size(), 1u);
  EXPECT_THAT(unified.notes[0], HasSubstr("\"host_local\" is unused on device 1 (unified)"));
  EXPECT_THAT(unified.notes[0], HasSubstr("without being device-local"));
  EXPECT_THAT(Check("host_local", {Unified()}), IsOk());
}

TEST(PoolResolutionTest, HostLocalThatFailsForAnotherReasonIsAnError) {
  DeviceInfo uncached = Discrete();
  uncached.memory_types.pop_back();
  EXPECT_THAT(Check("host_local|host_cached", {uncached}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "\"host_local|host_cached\""));
  EXPECT_THAT(Check("host_local|device_local", {Unified()}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "\"host_local|device_local\""));
}

TEST(PoolResolutionTest, ADeviceThatExportsNothingHasNoPools) {
  DeviceInfo none = Unified();
  none.memory_types[0].exportable = {};
  const ResolvedPools resolved = Resolve("", none);
  EXPECT_THAT(resolved.pools, IsEmpty());
  EXPECT_THAT(resolved.matched, ElementsAre(false));
  EXPECT_THAT(Check("", {none}), StatusIs(absl::StatusCode::kFailedPrecondition,
                                          "device 1 (unified): no exportable memory type"));
}

TEST(PoolResolutionTest, QuotesTheNameOfADeviceEscaped) {
  DeviceInfo odd = Unified();
  odd.name = "a\nb";
  EXPECT_THAT(Resolve("host_local", odd).notes[0], HasSubstr("device 1 (a\\nb)"));
}

}  // namespace
}  // namespace heapbroker
