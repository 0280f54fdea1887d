// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/import_checks.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <limits>

#include "client/src/import_slots.h"
#include "common/posix/unique_fd.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

constexpr absl::StatusCode kPrecondition = absl::StatusCode::kFailedPrecondition;

ImportFacts Facts() {
  return {.block_id = 9,
          .size = Bytes(4000),
          .allocation_size = Bytes(4096),
          .memory_type_index = 1,
          .memory_property_flags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT};
}

VkPhysicalDeviceMemoryProperties TwoTypes() {
  VkPhysicalDeviceMemoryProperties memory{};
  memory.memoryTypeCount = 2;
  memory.memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  memory.memoryTypes[1].propertyFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  return memory;
}

TEST(ImportChecksTest, AcceptsTheSameDeviceAndDriver) {
  BrokerDevice broker{.device_uuid = {1}, .driver_uuid = {2}};
  ImportingDevice importing{.device_uuid = {1}, .driver_uuid = {2}};
  EXPECT_THAT(CheckDevice(broker, importing), IsOk());
}

TEST(ImportChecksTest, NamesBothDevicesWhenTheyDiffer) {
  BrokerDevice broker{.name = "broker's", .device_uuid = {1}, .driver_uuid = {2}};
  ImportingDevice other_device{.name = "mine", .device_uuid = {3}, .driver_uuid = {2}};
  ImportingDevice other_driver{.name = "mine", .device_uuid = {1}, .driver_uuid = {0xab}};
  EXPECT_THAT(
      CheckDevice(broker, other_device),
      StatusIs(kPrecondition, "broker's (device UUID 01000000-0000-0000-0000-000000000000"));
  EXPECT_THAT(CheckDevice(broker, other_device),
              StatusIs(kPrecondition, "mine (device UUID 03000000-"));
  EXPECT_THAT(CheckDevice(broker, other_driver),
              StatusIs(kPrecondition, "driver UUID ab000000-0000-0000-0000-000000000000"));
}

TEST(ImportChecksTest, RefusesAMemoryTypeThatTheDeviceDoesNotHave) {
  ImportFacts facts = Facts();
  EXPECT_THAT(CheckMemoryType(facts, TwoTypes()), IsOk());
  facts.memory_type_index = 2;
  EXPECT_THAT(CheckMemoryType(facts, TwoTypes()), StatusIs(kPrecondition, "has 2 types"));
  facts.memory_type_index = std::numeric_limits<uint32_t>::max();
  EXPECT_THAT(CheckMemoryType(facts, TwoTypes()), StatusIs(kPrecondition, "has 2 types"));
}

TEST(ImportChecksTest, RefusesAMemoryTypeWithOtherFlagsThanPromised) {
  ImportFacts facts = Facts();
  facts.memory_type_index = 0;
  EXPECT_THAT(CheckMemoryType(facts, TwoTypes()), StatusIs(kPrecondition, "0x2 at the broker"));
}

TEST(ImportChecksTest, RefusesABufferThatDoesNotFit) {
  EXPECT_THAT(CheckRequirements(Facts(), {.size = 4096, .alignment = 64, .memoryTypeBits = 2}),
              IsOk());
  EXPECT_THAT(CheckRequirements(Facts(), {.size = 4097, .alignment = 64, .memoryTypeBits = 2}),
              StatusIs(kPrecondition, "needs 4097 bytes"));
  EXPECT_THAT(CheckRequirements(Facts(), {.size = 4096, .alignment = 64, .memoryTypeBits = 5}),
              StatusIs(kPrecondition, "cannot lie in memory type 1"));
}

TEST(ImportChecksTest, RefusesDescriptorsThatAreNoMemory) {
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  const UniqueFd read_end(pipe_fds[0]), write_end(pipe_fds[1]);
  const UniqueFd socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const UniqueFd directory(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_THAT(CheckDescriptor(Facts(), read_end.get()), StatusIs(kPrecondition, "a pipe"));
  EXPECT_THAT(CheckDescriptor(Facts(), socket_fd.get()), StatusIs(kPrecondition, "a socket"));
  EXPECT_THAT(CheckDescriptor(Facts(), directory.get()), StatusIs(kPrecondition, "a directory"));
  EXPECT_THAT(CheckDescriptor(Facts(), -1), StatusIs(absl::StatusCode::kInvalidArgument, ""));
}

TEST(ImportChecksTest, RefusesAMemoryFileThatIsTooSmall) {
  const UniqueFd file(memfd_create("block", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 4095), 0);
  EXPECT_THAT(CheckDescriptor(Facts(), file.get()), StatusIs(kPrecondition, "holds 4095 bytes"));
  ASSERT_EQ(ftruncate(file.get(), 4096), 0);
  EXPECT_THAT(CheckDescriptor(Facts(), file.get()), IsOk());
}

TEST(ImportChecksTest, LeavesDeviceNodesToTheDriver) {
  const UniqueFd node(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_THAT(CheckDescriptor(Facts(), node.get()), IsOk());
}

TEST(ImportChecksTest, TakesNothingForADmaBufThatIsNone) {
  ImportFacts facts = Facts();
  facts.handle_type = HandleType::kDmaBuf;
  const UniqueFd file(memfd_create("block", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 4096), 0);
  const UniqueFd node(open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd plain(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  for (const UniqueFd* fd : {&file, &node, &plain}) {
    EXPECT_THAT(CheckDescriptor(facts, fd->get()), StatusIs(kPrecondition, "is no dma-buf"));
  }
}

TEST(ImportChecksTest, ADmaBufNeedsADeviceThatWasMadeForIt) {
  ImportFacts facts = Facts();
  facts.handle_type = HandleType::kDmaBuf;
  VulkanContext context;
  EXPECT_THAT(CheckUsage(facts, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, context),
              StatusIs(kPrecondition, "DmaBufDeviceExtensions()"));
  context.dma_bufs = true;
  EXPECT_THAT(CheckUsage(facts, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, context), IsOk());
  EXPECT_THAT(CheckUsage(Facts(), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, {}), IsOk());
}

TEST(ImportChecksTest, DeviceAddressesNeedABlockAndADeviceThatHaveThem) {
  constexpr VkBufferUsageFlags kAddress = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  ImportFacts facts = Facts();
  VulkanContext context{.device_addresses = true};
  EXPECT_THAT(CheckUsage(facts, kAddress, context),
              StatusIs(kPrecondition, "was not made for device addresses"));
  facts.device_address = true;
  EXPECT_THAT(CheckUsage(facts, kAddress, context), IsOk());
  context.device_addresses = false;
  for (VkBufferUsageFlags usage : {kAddress, VkBufferUsageFlags{kDedicatedBufferUsage}}) {
    EXPECT_THAT(CheckUsage(facts, usage, context),
                StatusIs(kPrecondition, "VulkanContext::device_addresses"));
  }
  // A dma-buf's import may differ from its export.
  facts.handle_type = HandleType::kDmaBuf;
  context.dma_bufs = true;
  EXPECT_THAT(CheckUsage(facts, kDedicatedBufferUsage, context), IsOk());
  EXPECT_THAT(CheckUsage(facts, kAddress, context), StatusIs(kPrecondition, "device_addresses"));
}

TEST(ImportChecksTest, ADedicatedBlockHasTheUsageOfItsOneBuffer) {
  ImportFacts facts = Facts();
  facts.dedicated = true;
  EXPECT_THAT(CheckUsage(facts, kDedicatedBufferUsage, {}), IsOk());
  EXPECT_THAT(CheckUsage(facts, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT, {}),
              StatusIs(kPrecondition, "does not cover 0x80"));
  EXPECT_EQ(DedicatedUsage(facts), kDedicatedBufferUsage);
  facts.device_address = true;
  EXPECT_EQ(DedicatedUsage(facts),
            kDedicatedBufferUsage | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT);
}

// Of the daemon as well, which makes the other half of each dedicated block.
static_assert(kDedicatedBufferUsage == 0x133);

TEST(DmaBufTypeTest, TheExportersOwnTypeOnTheSameDevice) {
  const ImportFacts facts = Facts();  // Type 1, host-visible.
  EXPECT_THAT(ChooseDmaBufType(facts, /*same_device=*/true, 0b11, 0b11, TwoTypes()).value(), 1u);
  EXPECT_THAT(ChooseDmaBufType(facts, /*same_device=*/true, 0b01, 0b11, TwoTypes()).value(), 0u)
      << "but never one that the descriptor cannot be";
}

TEST(DmaBufTypeTest, OnAnotherDeviceTheNearestOfWhatBothAllow) {
  ImportFacts facts = Facts();
  facts.memory_type_index = 7;  // Means nothing there.
  VkPhysicalDeviceMemoryProperties memory{};
  memory.memoryTypeCount = 4;
  memory.memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  memory.memoryTypes[1].propertyFlags =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  memory.memoryTypes[2].propertyFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  EXPECT_EQ(ChooseDmaBufType(facts, false, 0b1111, 0b0111, memory).value(), 2u) << "same flags";
  EXPECT_EQ(ChooseDmaBufType(facts, false, 0b0011, 0b1111, memory).value(), 1u) << "mappable";
  EXPECT_EQ(ChooseDmaBufType(facts, false, 0b1001, 0b0001, memory).value(), 0u) << "any";
}

TEST(DmaBufTypeTest, NoCommonTypeIsAnErrorThatTellsBothSides) {
  EXPECT_THAT(ChooseDmaBufType(Facts(), false, 0b01, 0b10, TwoTypes()),
              StatusIs(kPrecondition, "possible: 0x1) and a buffer of this usage (possible: 0x2)"));
  EXPECT_THAT(ChooseDmaBufType(Facts(), false, 0b100, 0b100, TwoTypes()),
              StatusIs(kPrecondition, "no memory type"))
      << "types that the device does not have";
}

TEST(ImportChecksTest, KeepsAMarginUnderTheDevicesNumberOfAllocations) {
  EXPECT_EQ(MaxImports(4096, 0), 4080u);
  EXPECT_EQ(MaxImports(4096, 1000), 3080u);
  EXPECT_EQ(MaxImports(64, 0), 56u);
  EXPECT_EQ(MaxImports(64, 56), 0u);
  EXPECT_EQ(MaxImports(64, std::numeric_limits<uint32_t>::max()), 0u);
  EXPECT_EQ(MaxImports(0, 0), 0u);
}

TEST(ImportSlotsTest, RefusesBeyondTheLimitAndTellsIt) {
  ImportSlots slots(2);
  ASSERT_THAT(slots.Take(), IsOk());
  ASSERT_THAT(slots.Take(), IsOk());
  EXPECT_THAT(slots.Take(), StatusIs(absl::StatusCode::kResourceExhausted, "2 of 2 imports"));
  slots.Give();
  EXPECT_THAT(slots.Take(), IsOk());
  EXPECT_EQ(slots.taken(), 2u);
}

}  // namespace
}  // namespace heapbroker
