// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/plan_parser.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker::faults {
namespace {

using absl::StatusCode;

FaultPlan Parsed(absl::string_view text) {
  absl::StatusOr<FaultPlan> plan = ParseFaultPlan(text);
  EXPECT_THAT(plan, IsOk());
  return plan.value_or(FaultPlan{"", false, {}, {DevicePlan{}}});
}

TEST(PlanParserTest, AnEmptyPlanShowsEveryDeviceAsItIs) {
  const FaultPlan plan = Parsed("\n  # nothing\n\n");
  ASSERT_EQ(plan.devices.size(), 1u);
  EXPECT_EQ(plan.devices[0].name, "default");
  EXPECT_TRUE(plan.devices[0].every_device);
  EXPECT_TRUE(plan.faults.empty());
  EXPECT_FALSE(plan.abort_on_violation);
}

TEST(PlanParserTest, ReadsAWholeDevice) {
  const FaultPlan plan = Parsed(R"(
report "/tmp/a report"
on_violation abort
fault vkCreateInstance:1:error(-9)
device first   # a comment
  deviceName "A GPU # of sorts"
  deviceType discrete
  deviceUUID 00112233-4455-6677-8899-aabbccddeeff
  driverUUID FF000000000000000000000000000001
  driverID 3
  real_device 2
  mode lenient
  memoryHeap 8GiB device_local
  memoryHeap 16GiB none
  memoryType 0 device_local
  memoryType 1 host_visible|host_coherent 4
  queueFamily graphics|compute|transfer
  queueFamily transfer 2
  enforce heaps
  pad 64KiB 64
  fresh_memory 165
  maxMemoryAllocationCount 64
  maxMemoryAllocationSize 4GiB
  maxBufferSize 2GiB
  largest_real_allocation 1GiB
  heapBudget 0 7GiB
  heapBudget 1 0 20GiB
  hide VK_KHR_external_memory_fd
  add VK_EXT_memory_budget
  external opaque_fd not-exportable
  external opaque_fd dedicated-only
  external dma_buf not-importable
  fault vkAllocateMemory:3:error(-2)
device second
)");
  EXPECT_EQ(plan.report, "/tmp/a report");
  EXPECT_TRUE(plan.abort_on_violation);
  ASSERT_EQ(plan.faults.size(), 1u);
  EXPECT_EQ(plan.faults[0].function, Function::kCreateInstance);
  ASSERT_EQ(plan.devices.size(), 2u);
  EXPECT_EQ(plan.devices[1].name, "second");
  EXPECT_TRUE(plan.devices[1].strict);
  const DevicePlan& device = plan.devices[0];
  EXPECT_EQ(device.name, "first");
  EXPECT_FALSE(device.every_device);
  EXPECT_EQ(device.device_name, "A GPU # of sorts");
  EXPECT_EQ(device.device_type, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
  EXPECT_EQ((*device.device_uuid)[1], 0x11);
  EXPECT_EQ((*device.driver_uuid)[0], 0xFF);
  EXPECT_EQ(device.driver_id, VK_DRIVER_ID_MESA_RADV);
  EXPECT_EQ(device.real_device, 2u);
  EXPECT_FALSE(device.strict);
  ASSERT_EQ(device.heaps.size(), 2u);
  EXPECT_EQ(device.heaps[0].size, GiB(8));
  EXPECT_EQ(device.heaps[0].flags, VkMemoryHeapFlags{VK_MEMORY_HEAP_DEVICE_LOCAL_BIT});
  EXPECT_EQ(device.heaps[1].flags, 0u);
  ASSERT_EQ(device.memory_types.size(), 2u);
  EXPECT_EQ(device.memory_types[0].real_type, 0u);
  EXPECT_EQ(device.memory_types[1].heap, 1u);
  EXPECT_EQ(device.memory_types[1].flags,
            VkMemoryPropertyFlags{VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                  VK_MEMORY_PROPERTY_HOST_COHERENT_BIT});
  EXPECT_EQ(device.memory_types[1].real_type, 4u);
  EXPECT_EQ(device.queue_families,
            (std::vector<QueueFamilyPlan>{
                {VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 1},
                {VK_QUEUE_TRANSFER_BIT, 2}}));
  EXPECT_TRUE(device.enforce_heaps);
  EXPECT_EQ(device.padding->granularity, KiB(64));
  EXPECT_EQ(device.padding->extra, Bytes(64));
  EXPECT_EQ(device.fresh_memory, 165);
  EXPECT_EQ(device.max_allocation_count, 64u);
  EXPECT_EQ(device.max_allocation_size, GiB(4));
  EXPECT_EQ(device.max_buffer_size, GiB(2));
  EXPECT_EQ(device.largest_real_allocation, GiB(1));
  EXPECT_EQ(device.budgets.at(0).budget, GiB(7));
  EXPECT_FALSE(device.budgets.at(0).usage.has_value());
  EXPECT_EQ(device.budgets.at(1).usage, GiB(20));
  EXPECT_THAT(device.hidden_extensions, testing::ElementsAre("VK_KHR_external_memory_fd"));
  EXPECT_THAT(device.added_extensions, testing::ElementsAre("VK_EXT_memory_budget"));
  const ExternalPlan& opaque = device.external.at(VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT);
  EXPECT_FALSE(opaque.exportable);
  EXPECT_TRUE(opaque.importable);
  EXPECT_TRUE(opaque.dedicated_only);
  EXPECT_FALSE(device.external.at(VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT).importable);
  ASSERT_EQ(device.faults.size(), 1u);
  EXPECT_EQ(device.faults[0].when.first, 3u);
}

TEST(PlanParserTest, SaysOnWhichLineAndColumnAPlanIsWrong) {
  const std::pair<const char*, const char*> kMistakes[] = {
      {"\nlie", "line 2, column 1: \"lie\" is not allowed here"},
      {"deviceType cpu", "line 1, column 1: \"deviceType\" is not allowed here"},
      {"on_violation shrug", "line 1, column 14: \"shrug\" is not possible"},
      {"fault vkMapMemory:3", "line 1, column 7: position 13: a rule is"},
      {"device", "line 1, column 7: a name for the device is missing here"},
      {"device \"two words\"", "line 1, column 8: a device's name here is one word"},
      {"device a\ndevice a", "line 2, column 8: there is a device \"a\" already"},
      {"device a b", "line 1, column 10: \"b\" is one word too many"},
      {"device a\n  deviceName \"b", "line 2, column 14: this quote does not end"},
      {"device a\n  speed 9", "line 2, column 3: \"speed\" says nothing about a device"},
      {"device a\n  deviceType fast", "line 2, column 14: \"fast\" is no type of device"},
      {"device a\n  deviceUUID 12", "line 2, column 14: \"12\" is no UUID"},
      {"device a\n  memoryHeap 8 apples", "line 2, column 16: \"apples\" is no property of a heap"},
      {"device a\n  memoryHeap 8parsec none", "line 2, column 14: "},
      {"device a\n  memoryType 16 none", "line 2, column 14: \"16\" is no index of a heap"},
      {"device a\n  memoryType 0 fast", "line 2, column 16: \"fast\" is no property of memory"},
      {"device a\n  pad 0 64", "line 2, column 7: sizes cannot be rounded up to 0"},
      {"device a\n  fresh_memory 256", "line 2, column 16: \"256\" is no byte"},
      {"device a\n  mode loose", "line 2, column 8: \"loose\" is no mode"},
      {"device a\n  enforce law", "line 2, column 11: \"law\" cannot be enforced"},
      {"device a\n  external pigeon not-exportable", "line 2, column 12: \"pigeon\" is no type"},
      {"device a\n  external dma_buf fine", "line 2, column 20: \"fine\" is not known"},
      {"device a\n  fault vkCreateInstance:1:hang", "line 2, column 9: vkCreateInstance is called"},
      {"device a\n  memoryHeap 8GiB none\n", "line 1, column 1: device a has heaps without"},
      {"\ndevice a\n  memoryType 0 none\ndevice b", "line 2, column 1: device a has heaps"},
      {"device a\n memoryHeap 8 none\n memoryType 1 none", "has a memory type in heap 1"},
      {"device a\n memoryHeap 8 none\n memoryType 0 none\n heapBudget 1 5",
       "has a budget of heap 1 and only 1 heaps"},
  };
  for (const auto& [text, error] : kMistakes) {
    EXPECT_THAT(ParseFaultPlan(text), StatusIs(StatusCode::kInvalidArgument, error)) << text;
  }
}

}  // namespace
}  // namespace heapbroker::faults
