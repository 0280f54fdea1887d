// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How the fault layer shows devices.
#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/fault_file.h"
#include "tests/faults/vulkan_program.h"

namespace heapbroker {
namespace {

using testing::Contains;
using testing::Not;

constexpr char kTwoDevices[] = R"(
device left
  deviceName "Left GPU"
  deviceType discrete
  deviceUUID 11111111-1111-1111-1111-111111111111
  memoryHeap 1GiB device_local
  memoryType 0 device_local|host_visible|host_coherent
  maxMemoryAllocationCount 100
device right
  deviceName "Right GPU"
  deviceType integrated
  deviceUUID 22222222-2222-2222-2222-222222222222
  driverUUID 33333333-3333-3333-3333-333333333333
  memoryHeap 2GiB none
  memoryType 0 host_visible
  memoryType 0 host_visible|host_coherent
)";

VkPhysicalDeviceIDProperties Ids(VkPhysicalDevice device) {
  VkPhysicalDeviceIDProperties id{};
  id.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  properties.pNext = &id;
  vkGetPhysicalDeviceProperties2(device, &properties);
  return id;
}

bool AllBytesAre(const uint8_t (&uuid)[VK_UUID_SIZE], uint8_t value) {
  return std::all_of(uuid, uuid + VK_UUID_SIZE, [&](uint8_t byte) { return byte == value; });
}

TEST(LayerDevicesTest, AnEmptyPlanChangesNothing) {
  const VulkanProgram plain;
  const FaultFile file("");
  const ScopedFaults faults(file);
  const VulkanProgram program;
  EXPECT_STREQ(program.Properties().deviceName, plain.Properties().deviceName);
  const VkPhysicalDeviceMemoryProperties memory = program.Memory();
  const VkPhysicalDeviceMemoryProperties real = plain.Memory();
  EXPECT_EQ(std::memcmp(&memory, &real, sizeof(memory)), 0);
  EXPECT_EQ(file.Device("default").live_devices, 1u);
}

TEST(LayerDevicesTest, OneDriverIsShownAsTwoDevices) {
  const FaultFile file(kTwoDevices);
  const ScopedFaults faults(file);
  const VulkanProgram left(0);
  const VulkanProgram right(1);
  EXPECT_EQ(VulkanProgram::ListDevices(left.instance()).size(), 2u);

  EXPECT_STREQ(left.Properties().deviceName, "Left GPU");
  EXPECT_STREQ(right.Properties().deviceName, "Right GPU");
  EXPECT_EQ(left.Properties().deviceType, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
  EXPECT_EQ(right.Properties().deviceType, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU);
  EXPECT_TRUE(AllBytesAre(Ids(left.physical_device()).deviceUUID, 0x11));
  EXPECT_TRUE(AllBytesAre(Ids(right.physical_device()).deviceUUID, 0x22));
  EXPECT_TRUE(AllBytesAre(Ids(right.physical_device()).driverUUID, 0x33));
  EXPECT_FALSE(AllBytesAre(Ids(left.physical_device()).driverUUID, 0x33));
  EXPECT_EQ(left.Properties().limits.maxMemoryAllocationCount, 100u);
  EXPECT_EQ(left.Memory().memoryHeaps[0].size, VkDeviceSize{1} << 30);
  EXPECT_EQ(right.Memory().memoryHeaps[0].size, VkDeviceSize{2} << 30);
  EXPECT_EQ(left.Memory().memoryTypeCount, 1u);
  EXPECT_EQ(right.Memory().memoryTypeCount, 2u);
}

TEST(LayerDevicesTest, TwoDevicesOfOneInstanceWorkAtOnceAndShareMemory) {
  const FaultFile file(kTwoDevices);
  const ScopedFaults faults(file);
  const VulkanProgram left(0);
  VkDevice right = VK_NULL_HANDLE;
  ASSERT_EQ(VulkanProgram::CreateDevice(VulkanProgram::ListDevices(left.instance())[1], {}, &right),
            VK_SUCCESS);
  VkDeviceMemory exported = VK_NULL_HANDLE;
  ASSERT_EQ(left.Allocate(0, 65536, &exported), VK_SUCCESS);
  int fd = -1;
  ASSERT_EQ(left.Export(exported, &fd), VK_SUCCESS);

  VkImportMemoryFdInfoKHR import{};
  import.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR;
  import.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  import.fd = fd;
  VkMemoryAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  info.pNext = &import;
  info.allocationSize = 65536;
  info.memoryTypeIndex = 1;
  VkDeviceMemory imported = VK_NULL_HANDLE;
  ASSERT_EQ(vkAllocateMemory(right, &info, nullptr, &imported), VK_SUCCESS);
  void* written = nullptr;
  void* read = nullptr;
  ASSERT_EQ(vkMapMemory(left.device(), exported, 0, VK_WHOLE_SIZE, 0, &written), VK_SUCCESS);
  ASSERT_EQ(vkMapMemory(right, imported, 0, VK_WHOLE_SIZE, 0, &read), VK_SUCCESS);
  std::memset(written, 0x5A, 65536);
  EXPECT_EQ(static_cast<uint8_t*>(read)[65535], 0x5A);

  EXPECT_EQ(file.Device("left").live_allocations, 1u);
  EXPECT_EQ(file.Device("left").exported_descriptors, 1u);
  EXPECT_EQ(file.Device("right").live_allocations, 1u);
  EXPECT_EQ(file.Device("right").CallsOf(faults::Function::kImport), 1u);
  vkFreeMemory(right, imported, nullptr);
  left.Free(exported);
  vkDestroyDevice(right, nullptr);
  EXPECT_EQ(file.Device("right").live_devices, 0u);
  EXPECT_EQ(file.Violations(), "");
}

// Fills a buffer on the queue of a family, and gives it to another one.
void FillOn(VkDevice device, VkQueue queue, uint32_t family, uint32_t next_family,
            VkBuffer buffer) {
  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.queueFamilyIndex = family;
  VkCommandPool pool = VK_NULL_HANDLE;
  ASSERT_EQ(vkCreateCommandPool(device, &pool_info, nullptr, &pool), VK_SUCCESS);
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool;
  info.commandBufferCount = 1;
  VkCommandBuffer commands = VK_NULL_HANDLE;
  ASSERT_EQ(vkAllocateCommandBuffers(device, &info, &commands), VK_SUCCESS);
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  ASSERT_EQ(vkBeginCommandBuffer(commands, &begin), VK_SUCCESS);
  vkCmdFillBuffer(commands, buffer, 0, VK_WHOLE_SIZE, 0x11111111 * (family + 1));
  VkBufferMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER;
  barrier.srcQueueFamilyIndex = family;
  barrier.dstQueueFamilyIndex = next_family;
  barrier.buffer = buffer;
  barrier.size = VK_WHOLE_SIZE;
  vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                       VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, nullptr, 1, &barrier, 0,
                       nullptr);
  ASSERT_EQ(vkEndCommandBuffer(commands), VK_SUCCESS);
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = 1;
  submit.pCommandBuffers = &commands;
  ASSERT_EQ(vkQueueSubmit(queue, 1, &submit, VK_NULL_HANDLE), VK_SUCCESS);
  ASSERT_EQ(vkQueueWaitIdle(queue), VK_SUCCESS);
  vkDestroyCommandPool(device, pool, nullptr);
}

TEST(LayerDevicesTest, EachPlannedFamilyHasAQueueOfItsOwnThatWorks) {
  const FaultFile file("device gpu\n queueFamily compute|transfer\n queueFamily transfer\n");
  const ScopedFaults faults(file);
  const VulkanProgram program;
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(program.physical_device(), &count, nullptr);
  ASSERT_EQ(count, 2u);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(program.physical_device(), &count, families.data());
  EXPECT_EQ(families[0].queueFlags, VkQueueFlags{VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT});
  EXPECT_EQ(families[1].queueFlags, VkQueueFlags{VK_QUEUE_TRANSFER_BIT});
  EXPECT_EQ(families[1].queueCount, 1u);

  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue_infos[2] = {};
  for (uint32_t family = 0; family < 2; ++family) {
    queue_infos[family].sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue_infos[family].queueFamilyIndex = family;
    queue_infos[family].queueCount = 1;
    queue_infos[family].pQueuePriorities = &priority;
  }
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.queueCreateInfoCount = 2;
  info.pQueueCreateInfos = queue_infos;
  VkDevice device = VK_NULL_HANDLE;
  ASSERT_EQ(vkCreateDevice(program.physical_device(), &info, nullptr, &device), VK_SUCCESS);
  VkQueue queues[2] = {};
  for (uint32_t family = 0; family < 2; ++family) {
    vkGetDeviceQueue(device, family, 0, &queues[family]);
  }
  EXPECT_NE(queues[0], queues[1]);

  VkBufferCreateInfo buffer_info{};
  buffer_info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer_info.size = 64;
  buffer_info.usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  VkBuffer buffer = VK_NULL_HANDLE;
  ASSERT_EQ(vkCreateBuffer(device, &buffer_info, nullptr, &buffer), VK_SUCCESS);
  VkMemoryAllocateInfo memory_info{};
  memory_info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  memory_info.allocationSize = 4096;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  ASSERT_EQ(vkAllocateMemory(device, &memory_info, nullptr, &memory), VK_SUCCESS);
  ASSERT_EQ(vkBindBufferMemory(device, buffer, memory, 0), VK_SUCCESS);
  void* mapped = nullptr;
  ASSERT_EQ(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &mapped), VK_SUCCESS);
  for (uint32_t family = 0; family < 2; ++family) {
    ASSERT_NO_FATAL_FAILURE(FillOn(device, queues[family], family, 1 - family, buffer));
    EXPECT_EQ(static_cast<uint32_t*>(mapped)[15], 0x11111111 * (family + 1));
  }
  vkDestroyBuffer(device, buffer, nullptr);
  vkFreeMemory(device, memory, nullptr);
  vkDestroyDevice(device, nullptr);
  EXPECT_EQ(file.Violations(), "");
}

TEST(LayerDevicesTest, ListsTheSameHandlesEveryTimeEachAGroupOfItsOwn) {
  const FaultFile file(kTwoDevices);
  const ScopedFaults faults(file);
  const VulkanProgram program;
  const std::vector<VkPhysicalDevice> devices = VulkanProgram::ListDevices(program.instance());
  EXPECT_EQ(VulkanProgram::ListDevices(program.instance()), devices);
  EXPECT_NE(devices[0], devices[1]);

  uint32_t count = 0;
  ASSERT_EQ(vkEnumeratePhysicalDeviceGroups(program.instance(), &count, nullptr), VK_SUCCESS);
  ASSERT_EQ(count, 2u);
  std::vector<VkPhysicalDeviceGroupProperties> groups(count);
  for (auto& group : groups) group.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_GROUP_PROPERTIES;
  ASSERT_EQ(vkEnumeratePhysicalDeviceGroups(program.instance(), &count, groups.data()), VK_SUCCESS);
  for (size_t i = 0; i < groups.size(); ++i) {
    ASSERT_EQ(groups[i].physicalDeviceCount, 1u);
    EXPECT_EQ(groups[i].physicalDevices[0], devices[i]);
  }
}

TEST(LayerDevicesTest, MakesADeviceFromAGroup) {
  const FaultFile file(kTwoDevices);
  const ScopedFaults faults(file);
  const VulkanProgram program;
  const VkPhysicalDevice second = VulkanProgram::ListDevices(program.instance())[1];
  VkDeviceGroupDeviceCreateInfo group{};
  group.sType = VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO;
  group.physicalDeviceCount = 1;
  group.pPhysicalDevices = &second;
  const float priority = 1.0F;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &group;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  VkDevice device = VK_NULL_HANDLE;
  ASSERT_EQ(vkCreateDevice(second, &info, nullptr, &device), VK_SUCCESS);
  EXPECT_EQ(group.pPhysicalDevices, &second);
  vkDestroyDevice(device, nullptr);
}

TEST(LayerDevicesTest, AnswersEveryQuestionAboutAPhysicalDevice) {
  const FaultFile file(kTwoDevices);
  const ScopedFaults faults(file);
  const VulkanProgram program(1);
  const VkPhysicalDevice device = program.physical_device();

  VkPhysicalDeviceFeatures features{};
  vkGetPhysicalDeviceFeatures(device, &features);
  VkPhysicalDeviceFeatures2 features2{};
  features2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  vkGetPhysicalDeviceFeatures2(device, &features2);
  EXPECT_EQ(std::memcmp(&features, &features2.features, sizeof(features)), 0);
  VkFormatProperties format{};
  vkGetPhysicalDeviceFormatProperties(device, VK_FORMAT_R8_UNORM, &format);
  VkFormatProperties2 format2{};
  format2.sType = VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_2;
  vkGetPhysicalDeviceFormatProperties2(device, VK_FORMAT_R8_UNORM, &format2);
  EXPECT_EQ(format.linearTilingFeatures, format2.formatProperties.linearTilingFeatures);
  VkImageFormatProperties image{};
  EXPECT_EQ(vkGetPhysicalDeviceImageFormatProperties(device, VK_FORMAT_R8_UNORM, VK_IMAGE_TYPE_2D,
                                                     VK_IMAGE_TILING_LINEAR,
                                                     VK_IMAGE_USAGE_TRANSFER_SRC_BIT, 0, &image),
            VK_SUCCESS);
  uint32_t families = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device, &families, nullptr);
  uint32_t families2 = 0;
  vkGetPhysicalDeviceQueueFamilyProperties2(device, &families2, nullptr);
  EXPECT_GT(families, 0u);
  EXPECT_EQ(families, families2);
  uint32_t sparse = 0;
  vkGetPhysicalDeviceSparseImageFormatProperties(
      device, VK_FORMAT_R8_UNORM, VK_IMAGE_TYPE_2D, VK_SAMPLE_COUNT_1_BIT,
      VK_IMAGE_USAGE_TRANSFER_SRC_BIT, VK_IMAGE_TILING_OPTIMAL, &sparse, nullptr);
  VkPhysicalDeviceExternalFenceInfo fence{};
  fence.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_FENCE_INFO;
  fence.handleType = VK_EXTERNAL_FENCE_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkExternalFenceProperties fence_properties{};
  fence_properties.sType = VK_STRUCTURE_TYPE_EXTERNAL_FENCE_PROPERTIES;
  vkGetPhysicalDeviceExternalFenceProperties(device, &fence, &fence_properties);
  VkPhysicalDeviceExternalSemaphoreInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO;
  semaphore.handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkExternalSemaphoreProperties semaphore_properties{};
  semaphore_properties.sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES;
  vkGetPhysicalDeviceExternalSemaphoreProperties(device, &semaphore, &semaphore_properties);
  uint32_t tools = 0;
  EXPECT_EQ(vkGetPhysicalDeviceToolProperties(device, &tools, nullptr), VK_SUCCESS);
  uint32_t layers = 0;
  EXPECT_EQ(vkEnumerateDeviceLayerProperties(device, &layers, nullptr), VK_SUCCESS);
}

TEST(LayerDevicesTest, WindowSystemsAreNotOffered) {
  const FaultFile file("");
  const ScopedFaults faults(file);
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  const char* const surface = "VK_KHR_surface";
  info.enabledExtensionCount = 1;
  info.ppEnabledExtensionNames = &surface;
  VkInstance instance = VK_NULL_HANDLE;
  EXPECT_EQ(vkCreateInstance(&info, nullptr, &instance), VK_ERROR_EXTENSION_NOT_PRESENT);
  EXPECT_THAT(VulkanProgram().Extensions(), Not(Contains("VK_KHR_swapchain")));
}

TEST(LayerDevicesTest, HidesAndAddsExtensions) {
  const FaultFile file("device gpu\n hide VK_KHR_maintenance1\n add VK_EXT_memory_budget\n");
  const ScopedFaults faults(file);
  const VulkanProgram program(0, {"VK_EXT_memory_budget"});
  EXPECT_THAT(program.Extensions(), Contains("VK_EXT_memory_budget"));
  EXPECT_THAT(program.Extensions(), Not(Contains("VK_KHR_maintenance1")));
  VkDevice device = VK_NULL_HANDLE;
  EXPECT_EQ(
      VulkanProgram::CreateDevice(program.physical_device(), {"VK_KHR_maintenance1"}, &device),
      VK_ERROR_EXTENSION_NOT_PRESENT);
}

TEST(LayerDevicesTest, ExternalMemoryHasTheFeaturesThatThePlanLeavesIt) {
  const FaultFile file(
      "device gpu\n external opaque_fd dedicated-only\n"
      "device other\n external opaque_fd not-exportable\n");
  const ScopedFaults faults(file);
  const VulkanProgram program;
  const auto features = [&](size_t index) {
    VkPhysicalDeviceExternalBufferInfo info{};
    info.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    info.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    VkExternalBufferProperties properties{};
    properties.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
    vkGetPhysicalDeviceExternalBufferProperties(
        VulkanProgram::ListDevices(program.instance())[index], &info, &properties);
    return properties.externalMemoryProperties.externalMemoryFeatures;
  };
  EXPECT_NE(features(0) & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT, 0u);
  EXPECT_NE(features(0) & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT, 0u);
  EXPECT_EQ(features(1) & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT, 0u);
  // And holds callers to it.
  VkDeviceMemory memory = VK_NULL_HANDLE;
  EXPECT_NE(program.Allocate(0, 65536, &memory), VK_SUCCESS);
  EXPECT_THAT(file.Violations(), testing::HasSubstr("dedicated"));
}

}  // namespace
}  // namespace heapbroker
