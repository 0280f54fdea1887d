// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/convert.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;

constexpr absl::StatusCode kInternal = absl::StatusCode::kInternal;

v1::Block ValidBlock() {
  v1::Block block;
  block.set_block_id(3);
  block.set_size(100);
  block.set_allocation_size(128);
  block.set_memory_type_index(2);
  block.set_memory_property_flags(7);
  block.set_handle_type(v1::HANDLE_TYPE_OPAQUE_FD);
  block.set_device_index(1);
  return block;
}

v1::Welcome ValidWelcome() {
  v1::Welcome welcome;
  v1::Device& device = *welcome.add_devices();
  device.set_name("card");
  device.set_device_uuid(std::string(16, 'd'));
  device.set_driver_uuid(std::string(16, 'r'));
  device.set_software(true);
  device.add_heaps()->set_size(5);
  v1::MemoryType& type = *device.add_memory_types();
  type.set_property_flags(6);
  type.add_handle_types(v1::HANDLE_TYPE_DMA_BUF);
  type.add_handle_types(static_cast<v1::HandleType>(99));
  device.set_device_addresses(true);
  device.add_dedicated_only(v1::HANDLE_TYPE_OPAQUE_FD);
  return welcome;
}

TEST(ConvertTest, ABlockKeepsAllItsFacts) {
  ASSERT_OK_AND_ASSIGN(const ImportFacts facts, FromMessage(ValidBlock(), 2));
  EXPECT_EQ(facts.block_id, 3u);
  EXPECT_EQ(facts.size, Bytes(100));
  EXPECT_EQ(facts.allocation_size, Bytes(128));
  EXPECT_EQ(facts.memory_type_index, 2u);
  EXPECT_EQ(facts.memory_property_flags, 7u);
  EXPECT_EQ(facts.device_index, 1u);
  EXPECT_EQ(facts.handle_type, HandleType::kOpaqueFd);
  EXPECT_FALSE(facts.device_address);
  EXPECT_FALSE(facts.dedicated);
}

TEST(ConvertTest, ABlockKeepsWhatItsImportHasToSay) {
  v1::Block block = ValidBlock();
  block.set_handle_type(v1::HANDLE_TYPE_DMA_BUF);
  block.set_device_address(true);
  block.set_dedicated(true);
  ASSERT_OK_AND_ASSIGN(const ImportFacts facts, FromMessage(block, 2));
  EXPECT_EQ(facts.handle_type, HandleType::kDmaBuf);
  EXPECT_TRUE(facts.device_address);
  EXPECT_TRUE(facts.dedicated);
}

TEST(ConvertTest, ABlockThatMakesNoSenseIsAnError) {
  v1::Block block = ValidBlock();
  block.set_handle_type(v1::HANDLE_TYPE_UNSPECIFIED);
  EXPECT_THAT(FromMessage(block, 2), StatusIs(kInternal, "handle type 0"));
  EXPECT_THAT(FromMessage(ValidBlock(), 1), StatusIs(kInternal, "makes no sense"));
  block = ValidBlock();
  block.set_allocation_size(99);
  EXPECT_THAT(FromMessage(block, 2), StatusIs(kInternal, "makes no sense"));
  block = ValidBlock();
  block.set_size(0);
  EXPECT_THAT(FromMessage(block, 2), StatusIs(kInternal, "makes no sense"));
  block = ValidBlock();
  block.set_block_id(0);
  EXPECT_THAT(FromMessage(block, 2), StatusIs(kInternal, "makes no sense"));
}

TEST(ConvertTest, DevicesKeepTheirDescription) {
  ASSERT_OK_AND_ASSIGN(const std::vector<BrokerDevice> devices, DevicesFrom(ValidWelcome()));
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_EQ(devices[0].name, "card");
  EXPECT_TRUE(devices[0].software);
  EXPECT_EQ(devices[0].device_uuid[15], 'd');
  EXPECT_EQ(devices[0].driver_uuid[0], 'r');
  EXPECT_EQ(devices[0].heaps.at(0).size, Bytes(5));
  EXPECT_EQ(devices[0].memory_types.at(0).property_flags, 6u);
  EXPECT_THAT(devices[0].memory_types.at(0).handle_types, ElementsAre(HandleType::kDmaBuf))
      << "those that a newer daemon knows are left out";
  EXPECT_TRUE(devices[0].device_addresses);
  EXPECT_THAT(devices[0].dedicated_only, ElementsAre(HandleType::kOpaqueFd));
}

TEST(ConvertTest, DevicesThatMakeNoSenseAreAnError) {
  v1::Welcome welcome = ValidWelcome();
  welcome.mutable_devices(0)->set_device_uuid("short");
  EXPECT_THAT(DevicesFrom(welcome), StatusIs(kInternal, "UUID of 5 bytes"));
  welcome = ValidWelcome();
  welcome.mutable_devices(0)->set_index(1);
  EXPECT_THAT(DevicesFrom(welcome), StatusIs(kInternal, "out of order"));
}

TEST(ConvertTest, AttachingLeavesTheKindUnset) {
  SegmentOptions options{.name = "w", .mode = SegmentOptions::Mode::kAttach, .wait = true};
  const v1::OpenSegmentRequest attach = ToMessage(options);
  EXPECT_EQ(attach.mode(), v1::OpenSegmentRequest::MODE_ATTACH);
  EXPECT_EQ(attach.kind(), v1::MEMORY_KIND_UNSPECIFIED);
  EXPECT_TRUE(attach.wait());
  options = {.name = "w", .size = Bytes(8), .memory = MemoryKind::kHostVisible};
  const v1::OpenSegmentRequest create = ToMessage(options);
  EXPECT_EQ(create.mode(), v1::OpenSegmentRequest::MODE_CREATE_OR_ATTACH);
  EXPECT_EQ(create.kind(), v1::MEMORY_KIND_HOST_VISIBLE);
  EXPECT_EQ(create.size(), 8u);
}

TEST(ConvertTest, ARequestNamesItsMemoryInOneOfThreeWays) {
  EXPECT_EQ(ToMessage(AllocationRequest{.memory = MemoryKind::kHostCached}).kind(),
            v1::MEMORY_KIND_HOST_CACHED);
  const v1::BlockRequest by_key =
      ToMessage(AllocationRequest{.memory = HeapKey{"device_local;mapping"}});
  EXPECT_EQ(by_key.heap_key(), "device_local;mapping");
  EXPECT_EQ(by_key.memory_case(), v1::BlockRequest::kHeapKey);
  const v1::BlockRequest by_type = ToMessage(AllocationRequest{.memory = MemoryTypeIndex{0}});
  EXPECT_EQ(by_type.memory_case(), v1::BlockRequest::kMemoryTypeIndex);
}

TEST(ConvertTest, ARequestKeepsItsVulkanTerms) {
  const v1::BlockRequest message = ToMessage(AllocationRequest{.handle_type = HandleType::kDmaBuf,
                                                               .device_address = true,
                                                               .dedicated = true,
                                                               .transient = true});
  EXPECT_EQ(message.handle_type(), v1::HANDLE_TYPE_DMA_BUF);
  EXPECT_TRUE(message.device_address());
  EXPECT_TRUE(message.dedicated());
  EXPECT_TRUE(message.transient());
  EXPECT_EQ(ToMessage(AllocationRequest{.handle_type = HandleType::kOpaqueFd}).handle_type(),
            v1::HANDLE_TYPE_OPAQUE_FD);
}

TEST(ConvertTest, AWaitIsSaidInSecondsAndNanosecondsOfOneSign) {
  const auto wait = [](absl::Duration duration) {
    return ToMessage(absl::Span<const AllocationRequest>(), {.max_wait = duration}).max_wait();
  };
  EXPECT_EQ(wait(absl::Nanoseconds(2'000'000'003)).seconds(), 2);
  EXPECT_EQ(wait(absl::Nanoseconds(2'000'000'003)).nanos(), 3);
  EXPECT_EQ(wait(absl::Milliseconds(-1500)).seconds(), -1);
  EXPECT_EQ(wait(absl::Milliseconds(-1500)).nanos(), -500'000'000);
  EXPECT_EQ(wait(absl::InfiniteDuration()).seconds(), 315'576'000'000);
  EXPECT_EQ(wait(absl::InfiniteDuration()).nanos(), 0);
}

TEST(ConvertTest, ARequestKeepsSizesUpTo64Bits) {
  const v1::BlockRequest message =
      ToMessage(AllocationRequest{.size = Bytes::Max(), .alignment = Bytes(3), .zeroed = true});
  EXPECT_EQ(message.size(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(message.alignment(), 3u);
  EXPECT_TRUE(message.zeroed());
}

}  // namespace
}  // namespace heapbroker
