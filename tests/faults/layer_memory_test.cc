// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the fault layer makes of memory: types, sizes, contents, limits.
#include <unistd.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/fault_file.h"
#include "tests/faults/vulkan_program.h"

namespace heapbroker {
namespace {

using testing::HasSubstr;

constexpr VkDeviceSize kPage = 65536;

class LayerMemoryTest : public testing::Test {
 protected:
  void Start(absl::string_view plan) {
    file_ = std::make_unique<FaultFile>(plan);
    faults_ = std::make_unique<ScopedFaults>(*file_);
    program_ = std::make_unique<VulkanProgram>();
  }

  VkDeviceMemory Allocated(uint32_t type, VkDeviceSize size) {
    VkDeviceMemory memory = VK_NULL_HANDLE;
    EXPECT_EQ(program_->Allocate(type, size, &memory), VK_SUCCESS);
    return memory;
  }

  std::unique_ptr<FaultFile> file_;
  std::unique_ptr<ScopedFaults> faults_;
  std::unique_ptr<VulkanProgram> program_;
};

constexpr char kTypes[] = R"(
device gpu
  memoryHeap 1GiB device_local
  memoryHeap 1GiB none
  memoryType 0 device_local
  memoryType 0 device_local|host_visible
  memoryType 1 host_visible|host_coherent
  external opaque_fd not-importable
)";

TEST_F(LayerMemoryTest, EveryTypeCanBeAllocatedAndOnlyHostVisibleOnesMapped) {
  Start(kTypes);
  for (uint32_t type = 0; type < 3; ++type) {
    const VkDeviceMemory memory = Allocated(type, kPage);
    void* bytes = nullptr;
    EXPECT_EQ(vkMapMemory(program_->device(), memory, 0, VK_WHOLE_SIZE, 0, &bytes),
              type == 0 ? VK_ERROR_MEMORY_MAP_FAILED : VK_SUCCESS);
    program_->Free(memory);
  }
  EXPECT_THAT(file_->Violations(), HasSubstr("not host-visible"));
  EXPECT_EQ(file_->Report()->violation_count, 1u);
}

TEST_F(LayerMemoryTest, ATypeThatThePlanDoesNotHaveNeverReachesTheDriver) {
  Start(kTypes);
  VkDeviceMemory memory = VK_NULL_HANDLE;
  EXPECT_NE(program_->Allocate(3, kPage, &memory), VK_SUCCESS);
  EXPECT_THAT(file_->Violations(), HasSubstr("memory type 3"));
}

VkMemoryRequirements BufferRequirements(VkDevice device, VkBuffer buffer) {
  VkMemoryRequirements requirements{};
  vkGetBufferMemoryRequirements(device, buffer, &requirements);
  return requirements;
}

VkMemoryRequirements BufferRequirements2(VkDevice device, VkBuffer buffer) {
  VkBufferMemoryRequirementsInfo2 info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2;
  info.buffer = buffer;
  VkMemoryRequirements2 requirements{};
  requirements.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2;
  vkGetBufferMemoryRequirements2(device, &info, &requirements);
  return requirements.memoryRequirements;
}

VkMemoryRequirements DeviceBufferRequirements(VkDevice device, VkDeviceSize size) {
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.size = size;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  VkDeviceBufferMemoryRequirements info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_BUFFER_MEMORY_REQUIREMENTS;
  info.pCreateInfo = &create;
  VkMemoryRequirements2 requirements{};
  requirements.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2;
  vkGetDeviceBufferMemoryRequirements(device, &info, &requirements);
  return requirements.memoryRequirements;
}

VkImageCreateInfo SmallImage() {
  VkImageCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
  create.imageType = VK_IMAGE_TYPE_2D;
  create.format = VK_FORMAT_R8G8B8A8_UNORM;
  create.extent = {16, 16, 1};
  create.mipLevels = 1;
  create.arrayLayers = 1;
  create.samples = VK_SAMPLE_COUNT_1_BIT;
  create.usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT;
  return create;
}

TEST_F(LayerMemoryTest, EveryQuestionForRequirementsIsAnsweredPaddedAndInThePlansTypes) {
  Start(std::string(kTypes) + " pad 64KiB 64\n");
  const VkDevice device = program_->device();
  VkBuffer buffer = VK_NULL_HANDLE;
  ASSERT_EQ(program_->CreateBuffer(1000, &buffer), VK_SUCCESS);
  const VkImageCreateInfo create = SmallImage();
  VkImage image = VK_NULL_HANDLE;
  ASSERT_EQ(vkCreateImage(device, &create, nullptr, &image), VK_SUCCESS);
  VkMemoryRequirements of_image{};
  vkGetImageMemoryRequirements(device, image, &of_image);
  VkImageMemoryRequirementsInfo2 info2{};
  info2.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2;
  info2.image = image;
  VkMemoryRequirements2 of_image2{};
  of_image2.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2;
  vkGetImageMemoryRequirements2(device, &info2, &of_image2);
  VkDeviceImageMemoryRequirements device_info{};
  device_info.sType = VK_STRUCTURE_TYPE_DEVICE_IMAGE_MEMORY_REQUIREMENTS;
  device_info.pCreateInfo = &create;
  VkMemoryRequirements2 of_device_image{};
  of_device_image.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2;
  vkGetDeviceImageMemoryRequirements(device, &device_info, &of_device_image);

  for (const VkMemoryRequirements& requirements :
       {BufferRequirements(device, buffer), BufferRequirements2(device, buffer),
        DeviceBufferRequirements(device, 1000), of_image, of_image2.memoryRequirements,
        of_device_image.memoryRequirements}) {
    EXPECT_EQ(requirements.size, kPage + 64);
    EXPECT_EQ(requirements.memoryTypeBits, 0b111u);
  }
  vkDestroyImage(device, image, nullptr);
  vkDestroyBuffer(device, buffer, nullptr);
}

constexpr char kPadded[] = "device gpu\n pad 64KiB 64\n";

TEST_F(LayerMemoryTest, ImportsThePaddedSizeAndRefusesTheUnpaddedOne) {
  Start(kPadded);
  const VkDeviceMemory exported = Allocated(0, kPage + 64);
  int fd = -1;
  ASSERT_EQ(program_->Export(exported, &fd), VK_SUCCESS);
  VkDeviceMemory imported = VK_NULL_HANDLE;
  EXPECT_EQ(program_->Import(fd, 0, kPage, &imported), VK_ERROR_INVALID_EXTERNAL_HANDLE);
  ASSERT_EQ(program_->Import(fd, 0, kPage + 64, &imported), VK_SUCCESS);
  program_->Free(imported);
  program_->Free(exported);
  EXPECT_EQ(file_->Violations(), "");
}

TEST_F(LayerMemoryTest, ABufferDoesNotFitUnpaddedMemory) {
  Start(kPadded);
  const VkDeviceMemory small = Allocated(0, kPage);
  const VkDeviceMemory large = Allocated(0, kPage + 64);
  VkBuffer buffer = VK_NULL_HANDLE;
  ASSERT_EQ(program_->CreateBuffer(kPage, &buffer), VK_SUCCESS);
  EXPECT_NE(vkBindBufferMemory(program_->device(), buffer, small, 0), VK_SUCCESS);
  VkBindBufferMemoryInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_INFO;
  info.buffer = buffer;
  info.memory = small;
  EXPECT_NE(vkBindBufferMemory2(program_->device(), 1, &info), VK_SUCCESS);
  EXPECT_EQ(file_->Report()->violation_count, 2u);
  EXPECT_EQ(vkBindBufferMemory(program_->device(), buffer, large, 0), VK_SUCCESS);
  vkDestroyBuffer(program_->device(), buffer, nullptr);
  program_->Free(small);
  program_->Free(large);
}

TEST_F(LayerMemoryTest, TheTypesOfADescriptorAreThePlans) {
  Start("device gpu\n memoryHeap 1GiB none\n memoryType 0 none\n memoryType 0 host_visible\n");
  const auto get = reinterpret_cast<PFN_vkGetMemoryFdPropertiesKHR>(
      vkGetDeviceProcAddr(program_->device(), "vkGetMemoryFdPropertiesKHR"));
  if (get == nullptr) GTEST_SKIP() << "this driver does not answer it";
  const VkDeviceMemory memory = Allocated(0, kPage);
  int fd = -1;
  ASSERT_EQ(program_->Export(memory, &fd), VK_SUCCESS);
  VkMemoryFdPropertiesKHR properties{};
  properties.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR;
  const VkResult result =
      get(program_->device(), VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT, fd, &properties);
  close(fd);
  program_->Free(memory);
  if (result != VK_SUCCESS) GTEST_SKIP() << "this driver does not answer it for opaque ones";
  EXPECT_EQ(properties.memoryTypeBits, 0b11u);
}

TEST_F(LayerMemoryTest, NewMemoryHoldsWhatThePlanSaysAndAnImportWhatWasWritten) {
  Start("device gpu\n fresh_memory 165\n");
  const VkDeviceMemory memory = Allocated(0, kPage);
  void* bytes = nullptr;
  ASSERT_EQ(vkMapMemory(program_->device(), memory, 0, VK_WHOLE_SIZE, 0, &bytes), VK_SUCCESS);
  auto* const begin = static_cast<uint8_t*>(bytes);
  EXPECT_EQ(std::count(begin, begin + kPage, 165), static_cast<ptrdiff_t>(kPage));
  std::fill(begin, begin + kPage, uint8_t{7});
  int fd = -1;
  ASSERT_EQ(program_->Export(memory, &fd), VK_SUCCESS);
  VkDeviceMemory imported = VK_NULL_HANDLE;
  ASSERT_EQ(program_->Import(fd, 0, kPage, &imported), VK_SUCCESS);
  EXPECT_EQ(begin[0], 7);
  program_->Free(imported);
  program_->Free(memory);
}

TEST_F(LayerMemoryTest, ReportsTheAllocationBeyondTheCountAndKeepsItFromTheDriver) {
  Start("device gpu\n maxMemoryAllocationCount 3\n");
  std::vector<VkDeviceMemory> memories;
  for (int i = 0; i < 3; ++i) memories.push_back(Allocated(0, kPage));
  VkDeviceMemory one_more = VK_NULL_HANDLE;
  EXPECT_EQ(program_->Allocate(0, kPage, &one_more), VK_ERROR_TOO_MANY_OBJECTS);
  EXPECT_THAT(file_->Violations(), HasSubstr("allocation number 4"));
  EXPECT_EQ(file_->Device("gpu").peak_allocations, 3u);
  program_->Free(memories.back());
  memories.back() = Allocated(0, kPage);
  for (VkDeviceMemory memory : memories) program_->Free(memory);
  EXPECT_EQ(file_->Report()->violation_count, 1u);
}

TEST_F(LayerMemoryTest, ALenientDeviceOnlyAdvertisesItsLimits) {
  Start("device gpu\n mode lenient\n maxMemoryAllocationCount 1\n maxMemoryAllocationSize 4096\n");
  const VkDeviceMemory first = Allocated(0, kPage);
  const VkDeviceMemory second = Allocated(0, kPage);
  EXPECT_EQ(file_->Device("gpu").live_allocations, 2u);
  program_->Free(first);
  program_->Free(second);
  EXPECT_EQ(file_->Violations(), "");
}

TEST_F(LayerMemoryTest, TheRealLimitMayBeBelowTheAdvertisedOne) {
  Start("device gpu\n maxMemoryAllocationSize 4MiB\n largest_real_allocation 1MiB\n");
  VkDeviceMemory memory = VK_NULL_HANDLE;
  EXPECT_EQ(program_->Allocate(0, (1 << 20) + 1, &memory), VK_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(file_->Violations(), "");
  program_->Free(Allocated(0, 1 << 20));
}

TEST_F(LayerMemoryTest, CountsWhatIsAliveAndWhatWasAtMost) {
  Start("device gpu\n");
  const VkDeviceMemory first = Allocated(0, kPage);
  const VkDeviceMemory second = Allocated(0, 2 * kPage);
  EXPECT_EQ(file_->Device("gpu").live_allocations, 2u);
  EXPECT_EQ(file_->Device("gpu").live_bytes, 3 * kPage);
  program_->Free(first);
  program_->Free(second);
  vkFreeMemory(program_->device(), VK_NULL_HANDLE, nullptr);
  const faults::DeviceCounters counters = file_->Device("gpu");
  EXPECT_EQ(counters.live_allocations, 0u);
  EXPECT_EQ(counters.live_bytes, 0u);
  EXPECT_EQ(counters.peak_allocations, 2u);
  EXPECT_EQ(counters.peak_bytes, 3 * kPage);
  EXPECT_EQ(counters.CallsOf(faults::Function::kAllocateMemory), 2u);
  EXPECT_EQ(counters.CallsOf(faults::Function::kFreeMemory), 2u);
}

TEST_F(LayerMemoryTest, ReportsWhatIsLeftWhenTheDeviceGoes) {
  Start("device gpu\n");
  Allocated(0, kPage);
  VkBuffer buffer = VK_NULL_HANDLE;
  ASSERT_EQ(program_->CreateBuffer(1000, &buffer), VK_SUCCESS);
  VkFenceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  VkFence fence = VK_NULL_HANDLE;
  ASSERT_EQ(vkCreateFence(program_->device(), &info, nullptr, &fence), VK_SUCCESS);
  program_.reset();
  EXPECT_THAT(file_->Violations(),
              HasSubstr("leaves alive: allocations: 1, bytes: 65536, buffers: 1, fences: 1"));
}

TEST_F(LayerMemoryTest, HasNothingToReportAboutADeviceThatGoesEmpty) {
  Start("device gpu\n");
  const VkDeviceMemory memory = Allocated(0, kPage);
  VkBuffer buffer = VK_NULL_HANDLE;
  ASSERT_EQ(program_->CreateBuffer(1000, &buffer), VK_SUCCESS);
  vkDestroyBuffer(program_->device(), buffer, nullptr);
  program_->Free(memory);
  program_.reset();
  EXPECT_EQ(file_->Violations(), "");
}

TEST_F(LayerMemoryTest, FreeingTwiceIsReportedAndKeptFromTheDriver) {
  Start("device gpu\n");
  const VkDeviceMemory memory = Allocated(0, kPage);
  program_->Free(memory);
  program_->Free(memory);
  EXPECT_THAT(file_->Violations(), HasSubstr("not alive"));
  EXPECT_EQ(file_->Device("gpu").live_allocations, 0u);
}

}  // namespace
}  // namespace heapbroker
