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
