// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/convert.h"

#include <limits>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

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
  device.add_memory_types()->set_property_flags(6);
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

TEST(ConvertTest, ARequestKeepsSizesUpTo64Bits) {
  const v1::BlockRequest message =
      ToMessage(AllocationRequest{.size = Bytes::Max(), .alignment = Bytes(3), .zeroed = true});
  EXPECT_EQ(message.size(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(message.alignment(), 3u);
  EXPECT_TRUE(message.zeroed());
}

}  // namespace
}  // namespace heapbroker
