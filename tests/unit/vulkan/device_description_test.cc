// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_description.h"

#include <optional>
#include <utility>

#include "daemon/vulkan/device.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/vulkan/snapshots.h"

namespace heapbroker {
namespace {

VkMemoryType Type(VkMemoryPropertyFlags flags, uint32_t heap) {
  VkMemoryType type{};
  type.propertyFlags = flags;
  type.heapIndex = heap;
  return type;
}

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags kCoherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

DeviceSnapshot Gpu() { return MakeSnapshot("GPU", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 7); }

TEST(DeviceDescriptionTest, CarriesWhatAnImportMustMatch) {
  const DeviceSnapshot snapshot = Gpu();
  const DeviceInfo info = DescribeDevice(snapshot, {1}, /*index=*/3);
  EXPECT_EQ(info.index, 3U);
  EXPECT_EQ(info.name, "GPU");
  EXPECT_EQ(info.driver_info, "driver of GPU");
  EXPECT_EQ(info.device_uuid, snapshot.device_uuid);
  EXPECT_EQ(info.driver_uuid, snapshot.driver_uuid);
  EXPECT_EQ(info.max_allocation_count, 4096U);
}

TEST(DeviceDescriptionTest, TranslatesEveryType) {
  const std::pair<VkPhysicalDeviceType, DeviceType> types[] = {
      {VK_PHYSICAL_DEVICE_TYPE_OTHER, DeviceType::kOther},
      {VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, DeviceType::kIntegratedGpu},
      {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, DeviceType::kDiscreteGpu},
      {VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, DeviceType::kVirtualGpu},
      {VK_PHYSICAL_DEVICE_TYPE_CPU, DeviceType::kCpu},
      {VK_PHYSICAL_DEVICE_TYPE_MAX_ENUM, DeviceType::kOther}};
  for (const auto& [vulkan, core] : types) {
    EXPECT_EQ(DescribeDevice(MakeSnapshot("a", vulkan, 1), {1}).type, core);
  }
}

TEST(DeviceDescriptionTest, TheLargestBlockIsOneThatABufferCanCover) {
  DeviceSnapshot snapshot = Gpu();
  EXPECT_EQ(DescribeDevice(snapshot, {1}).max_allocation_size, GiB(4));
  snapshot.max_buffer_size = GiB(2);
  EXPECT_EQ(DescribeDevice(snapshot, {1}).max_allocation_size, GiB(2));
  snapshot.max_buffer_size = Bytes::Max();
  EXPECT_EQ(DescribeDevice(snapshot, {1}).max_allocation_size, GiB(4));
}

TEST(DeviceDescriptionTest, DescribesHeapsAndTypes) {
  DeviceSnapshot snapshot = Gpu();
  VkMemoryHeap host{};
  host.size = GiB(16).count();
  snapshot.heaps.push_back(host);
  snapshot.memory_types = {Type(kLocal, 0), Type(kVisible | kCoherent | kCached, 1),
                           Type(kLocal | kVisible | kCoherent, 0)};
  const DeviceInfo info = DescribeDevice(snapshot, {7});

  ASSERT_EQ(info.heaps.size(), 2U);
  EXPECT_EQ(info.heaps[0].size, GiB(8));
  EXPECT_TRUE(info.heaps[0].device_local);
  EXPECT_EQ(info.heaps[1].size, GiB(16));
  EXPECT_FALSE(info.heaps[1].device_local);

  ASSERT_EQ(info.memory_types.size(), 3U);
  const MemoryTypeInfo& cached = info.memory_types[1];
  EXPECT_EQ(cached.heap, 1U);
  EXPECT_FALSE(cached.device_local);
  EXPECT_TRUE(cached.host_visible);
  EXPECT_TRUE(cached.host_coherent);
  EXPECT_TRUE(cached.host_cached);
  EXPECT_EQ(cached.property_flags, kVisible | kCoherent | kCached);
  EXPECT_TRUE(info.memory_types[0].device_local);
  EXPECT_FALSE(info.memory_types[0].host_visible);
  EXPECT_FALSE(info.memory_types[2].host_cached);
}

TEST(DeviceDescriptionTest, CarriesTheDriversBudgetOfEachHeap) {
  DeviceSnapshot snapshot = Gpu();
  snapshot.heaps.push_back({.size = GiB(16).count(), .flags = 0});
  snapshot.heap_budgets = {GiB(7).count(), GiB(16).count()};
  const DeviceInfo info = DescribeDevice(snapshot, {1});
  EXPECT_EQ(info.heaps[0].driver_budget, GiB(7));
  EXPECT_EQ(info.heaps[1].driver_budget, GiB(16));
}

TEST(DeviceDescriptionTest, ADriverThatTellsNoBudgetHasNone) {
  EXPECT_EQ(DescribeDevice(Gpu(), {1}).heaps[0].driver_budget, std::nullopt);
}

TEST(DeviceDescriptionTest, DoesNotBelieveImpossibleBudgets) {
  DeviceSnapshot snapshot = Gpu();
  snapshot.heap_budgets = {0};
  EXPECT_EQ(DescribeDevice(snapshot, {1}).heaps[0].driver_budget, std::nullopt);
  for (const VkDeviceSize budget : {GiB(8).count() + 1, ~VkDeviceSize{0}}) {
    snapshot.heap_budgets = {budget};
    EXPECT_EQ(DescribeDevice(snapshot, {1}).heaps[0].driver_budget, GiB(8)) << budget;
  }
}

TEST(DeviceDescriptionTest, OnlyTypesThatBackExternalBuffersAreExportable) {
  DeviceSnapshot snapshot = Gpu();
  snapshot.memory_types = {Type(kLocal, 0), Type(kVisible | kCoherent, 0), Type(kLocal, 0)};
  const DeviceInfo info = DescribeDevice(snapshot, {0b101});
  EXPECT_TRUE(info.memory_types[0].exportable.any());
  EXPECT_FALSE(info.memory_types[1].exportable.any());
  EXPECT_TRUE(info.memory_types[2].exportable.any());
}

TEST(DeviceDescriptionTest, TypesThatNeedMoreThanMemoryAreNotExportable) {
  DeviceSnapshot snapshot = Gpu();
  snapshot.memory_types = {Type(kLocal | VK_MEMORY_PROPERTY_PROTECTED_BIT, 0),
                           Type(kLocal | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT, 0),
                           Type(kLocal | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD, 0),
                           Type(kLocal | VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD, 0),
                           Type(kLocal | 1U << 30, 0)};
  for (const MemoryTypeInfo& type : DescribeDevice(snapshot, {~0U}).memory_types) {
    EXPECT_FALSE(type.exportable.any()) << type.property_flags;
  }
}

TEST(DeviceDescriptionTest, AllThirtyTwoTypesCanBeDescribed) {
  DeviceSnapshot snapshot = Gpu();
  snapshot.memory_types.assign(VK_MAX_MEMORY_TYPES, Type(kLocal, 0));
  const DeviceInfo info = DescribeDevice(snapshot, {1U << 31});
  EXPECT_FALSE(info.memory_types.front().exportable.any());
  EXPECT_TRUE(info.memory_types.back().exportable.any());
}

// With dma-bufs as well.
DeviceSnapshot GpuWithDmaBufs() {
  DeviceSnapshot snapshot = Gpu();
  snapshot.extensions.insert(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
  snapshot.dma_buf_buffers = snapshot.opaque_fd_buffers;
  snapshot.dma_buf_buffers.compatibleHandleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  return snapshot;
}

TEST(DeviceDescriptionTest, EachTypeIsExportableAsWhatBacksBuffersOfThatHandleType) {
  DeviceSnapshot snapshot = GpuWithDmaBufs();
  snapshot.memory_types.assign(4, Type(kLocal, 0));
  const DeviceInfo info = DescribeDevice(snapshot, {.opaque_fd = 0b0011, .dma_buf = 0b0101});
  EXPECT_EQ(info.memory_types[0].exportable, (HandleTypes{.opaque_fd = true, .dma_buf = true}));
  EXPECT_EQ(info.memory_types[1].exportable, (HandleTypes{.opaque_fd = true, .dma_buf = false}));
  EXPECT_EQ(info.memory_types[2].exportable, (HandleTypes{.opaque_fd = false, .dma_buf = true}));
  EXPECT_FALSE(info.memory_types[3].exportable.any());
}

TEST(DeviceDescriptionTest, AHandleTypeThatIsNotClaimedIsNotExportableWhateverBacksIt) {
  const DeviceInfo info = DescribeDevice(Gpu(), {.opaque_fd = 1, .dma_buf = 1});
  EXPECT_EQ(info.memory_types[0].exportable, (HandleTypes{.opaque_fd = true, .dma_buf = false}));
}

TEST(DeviceDescriptionTest, CarriesDeviceAddressesAndWhatMustBeDedicated) {
  DeviceSnapshot snapshot = GpuWithDmaBufs();
  EXPECT_FALSE(DescribeDevice(snapshot, {1, 1}).device_addresses);
  EXPECT_EQ(DescribeDevice(snapshot, {1, 1}).dedicated_only, HandleTypes());
  snapshot.buffer_device_address = true;
  snapshot.dma_buf_buffers.externalMemoryFeatures |= VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  const DeviceInfo info = DescribeDevice(snapshot, {1, 1});
  EXPECT_TRUE(info.device_addresses);
  EXPECT_EQ(info.dedicated_only, (HandleTypes{.opaque_fd = false, .dma_buf = true}));
}

// Two memory types, both for both handle types; dma-bufs must be dedicated.
DeviceInfo InfoToTry() {
  DeviceInfo info;
  info.name = "GPU";
  info.memory_types.resize(2);
  for (MemoryTypeInfo& type : info.memory_types) type.exportable = {true, true};
  info.dedicated_only.dma_buf = true;
  info.device_addresses = true;
  return info;
}

TEST(HandleTrialTest, TriesEveryClaimOfEveryTypeOnce) {
  EXPECT_THAT(ClassesToTry(InfoToTry()),
              testing::ElementsAre(BlockClass{0, HandleType::kOpaqueFd, false, false},
                                   BlockClass{0, HandleType::kDmaBuf, false, true},
                                   BlockClass{1, HandleType::kOpaqueFd, false, false},
                                   BlockClass{1, HandleType::kDmaBuf, false, true}));
  EXPECT_THAT(ClassesToTry(DeviceInfo()), testing::IsEmpty());
}

TEST(HandleTrialTest, TriesAnAddressOnWhatIsLeft) {
  DeviceInfo info = InfoToTry();
  info.memory_types[0].exportable = {};
  info.memory_types[1].exportable.opaque_fd = false;
  EXPECT_THAT(AddressClassesToTry(info),
              testing::ElementsAre(BlockClass{1, HandleType::kDmaBuf, true, true}));
  info.memory_types[1].exportable = {};
  EXPECT_THAT(AddressClassesToTry(info), testing::IsEmpty());
  info = InfoToTry();
  info.device_addresses = false;
  EXPECT_THAT(AddressClassesToTry(info), testing::IsEmpty());
}

TEST(HandleTrialTest, DropsWhatFailedAndNothingElse) {
  DeviceInfo info = InfoToTry();
  const HandleTrial trials[] = {
      {{0, HandleType::kOpaqueFd}, absl::OkStatus()},
      {{0, HandleType::kDmaBuf, false, true}, absl::InternalError("no such thing")},
      {{1, HandleType::kOpaqueFd}, absl::ResourceExhaustedError("not today")}};
  EXPECT_THAT(
      DropWhatFailed(trials, info),
      testing::ElementsAre(testing::AllOf(testing::HasSubstr("'GPU'"),
                                          testing::HasSubstr("memory type 0 as dma-buf"),
                                          testing::HasSubstr("no such thing")),
                           testing::AllOf(testing::HasSubstr("memory type 1 as opaque descriptor"),
                                          testing::HasSubstr("not today"))));
  EXPECT_EQ(info.memory_types[0].exportable, (HandleTypes{.opaque_fd = true, .dma_buf = false}));
  EXPECT_EQ(info.memory_types[1].exportable, (HandleTypes{.opaque_fd = false, .dma_buf = true}));
  EXPECT_TRUE(info.device_addresses);
}

TEST(HandleTrialTest, AFailedAddressCostsOnlyTheAddresses) {
  DeviceInfo info = InfoToTry();
  EXPECT_THAT(DropWhatFailed({{{0, HandleType::kOpaqueFd, true}, absl::InternalError("no")}}, info),
              testing::ElementsAre(testing::HasSubstr("device addresses")));
  EXPECT_FALSE(info.device_addresses);
  EXPECT_EQ(info.memory_types[0].exportable, (HandleTypes{true, true}));
}

TEST(HandleTrialTest, SuccessIsNotWorthAWord) {
  DeviceInfo info = InfoToTry();
  EXPECT_THAT(DropWhatFailed({{{0, HandleType::kOpaqueFd}, absl::OkStatus()}}, info),
              testing::IsEmpty());
}

TEST(DriverGivesZerosTest, OnlyForTheSoftwareDriverThatIsKnownTo) {
  EXPECT_TRUE(DriverGivesZeros(VK_DRIVER_ID_MESA_LLVMPIPE));
  EXPECT_FALSE(DriverGivesZeros(VK_DRIVER_ID_GOOGLE_SWIFTSHADER));
  EXPECT_FALSE(DriverGivesZeros(VK_DRIVER_ID_NVIDIA_PROPRIETARY));
  EXPECT_FALSE(DriverGivesZeros(VK_DRIVER_ID_MESA_RADV));
  EXPECT_FALSE(DriverGivesZeros(std::nullopt));
}

}  // namespace
}  // namespace heapbroker
