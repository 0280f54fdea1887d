// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Calls that the fault layer breaks.
#include <fcntl.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/faults/fault_file.h"
#include "tests/faults/vulkan_program.h"

namespace heapbroker {
namespace {

constexpr VkDeviceSize kPage = 65536;

// Each fallible call, made once and undone.
VkResult AllocateAndFree(const VulkanProgram& program) {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  const VkResult result = program.Allocate(0, kPage, &memory);
  if (result == VK_SUCCESS) program.Free(memory);
  return result;
}

VkResult Map(const VulkanProgram& program) {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  EXPECT_EQ(program.Allocate(0, kPage, &memory), VK_SUCCESS);
  void* bytes = nullptr;
  const VkResult result = vkMapMemory(program.device(), memory, 0, VK_WHOLE_SIZE, 0, &bytes);
  program.Free(memory);
  return result;
}

VkResult Export(const VulkanProgram& program) {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  EXPECT_EQ(program.Allocate(0, kPage, &memory), VK_SUCCESS);
  int fd = -1;
  const VkResult result = program.Export(memory, &fd);
  if (result == VK_SUCCESS) close(fd);
  program.Free(memory);
  return result;
}

VkResult Bind(const VulkanProgram& program) {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  EXPECT_EQ(program.Allocate(0, kPage, &memory), VK_SUCCESS);
  EXPECT_EQ(program.CreateBuffer(1000, &buffer), VK_SUCCESS);
  const VkResult result = vkBindBufferMemory(program.device(), buffer, memory, 0);
  vkDestroyBuffer(program.device(), buffer, nullptr);
  program.Free(memory);
  return result;
}

VkResult MakeBuffer(const VulkanProgram& program) {
  VkBuffer buffer = VK_NULL_HANDLE;
  const VkResult result = program.CreateBuffer(1000, &buffer);
  if (result == VK_SUCCESS) vkDestroyBuffer(program.device(), buffer, nullptr);
  return result;
}

VkResult MakeFence(const VulkanProgram& program) {
  VkFenceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  VkFence fence = VK_NULL_HANDLE;
  const VkResult result = vkCreateFence(program.device(), &info, nullptr, &fence);
  if (result == VK_SUCCESS) vkDestroyFence(program.device(), fence, nullptr);
  return result;
}

VkResult MakePool(const VulkanProgram& program) {
  VkCommandPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  VkCommandPool pool = VK_NULL_HANDLE;
  const VkResult result = vkCreateCommandPool(program.device(), &info, nullptr, &pool);
  if (result == VK_SUCCESS) vkDestroyCommandPool(program.device(), pool, nullptr);
  return result;
}

VkResult WaitForFence(const VulkanProgram& program) {
  VkFenceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  info.flags = VK_FENCE_CREATE_SIGNALED_BIT;
  VkFence fence = VK_NULL_HANDLE;
  EXPECT_EQ(vkCreateFence(program.device(), &info, nullptr, &fence), VK_SUCCESS);
  const VkResult result = vkWaitForFences(program.device(), 1, &fence, VK_TRUE, 0);
  vkDestroyFence(program.device(), fence, nullptr);
  return result;
}

VkResult MakeDevice(const VulkanProgram& program) {
  VkDevice device = VK_NULL_HANDLE;
  const VkResult result = VulkanProgram::CreateDevice(program.physical_device(), {}, &device);
  if (result == VK_SUCCESS) vkDestroyDevice(device, nullptr);
  return result;
}

struct BreakableCall {
  std::string function;
  std::function<VkResult(const VulkanProgram&)> call;
  // Calls that VulkanProgram itself has made before.
  int made_before = 0;
};
std::ostream& operator<<(std::ostream& out, const BreakableCall& call) {
  return out << call.function;
}

class LayerFaultsTest : public testing::TestWithParam<BreakableCall> {};

TEST_P(LayerFaultsTest, FailsExactlyTheCallThatTheRuleNames) {
  const int broken = GetParam().made_before + 3;
  const FaultFile file(
      absl::StrCat("fault ", GetParam().function, ":", broken, ":error(VK_ERROR_DEVICE_LOST)\n"));
  const ScopedFaults faults(file);
  const VulkanProgram program;
  std::vector<VkResult> results;
  for (int i = 0; i < 4; ++i) results.push_back(GetParam().call(program));
  EXPECT_THAT(results,
              testing::ElementsAre(VK_SUCCESS, VK_SUCCESS, VK_ERROR_DEVICE_LOST, VK_SUCCESS));
  EXPECT_EQ(file.Device("default").faults, 1u);
  EXPECT_EQ(file.Violations(), "");
}

INSTANTIATE_TEST_SUITE_P(Calls, LayerFaultsTest,
                         testing::Values(BreakableCall{"vkAllocateMemory", AllocateAndFree},
                                         BreakableCall{"vkMapMemory", Map},
                                         BreakableCall{"vkGetMemoryFdKHR", Export},
                                         BreakableCall{"vkBindBufferMemory", Bind},
                                         BreakableCall{"vkCreateBuffer", MakeBuffer},
                                         BreakableCall{"vkCreateFence", MakeFence},
                                         BreakableCall{"vkCreateCommandPool", MakePool},
                                         BreakableCall{"vkWaitForFences", WaitForFence},
                                         BreakableCall{"vkQueueSubmit",
                                                       [](const VulkanProgram& program) {
                                                         return vkQueueSubmit(program.queue(), 0,
                                                                              nullptr,
                                                                              VK_NULL_HANDLE);
                                                       }},
                                         BreakableCall{"vkQueueWaitIdle",
                                                       [](const VulkanProgram& program) {
                                                         return vkQueueWaitIdle(program.queue());
                                                       }},
                                         BreakableCall{"vkDeviceWaitIdle",
                                                       [](const VulkanProgram& program) {
                                                         return vkDeviceWaitIdle(program.device());
                                                       }},
                                         BreakableCall{"vkCreateDevice", MakeDevice, 1}),
                         [](const auto& call) { return call.param.function; });

TEST(LayerRulesTest, AnInstanceCanFail) {
  const FaultFile file("fault vkCreateInstance:1:error(VK_ERROR_INCOMPATIBLE_DRIVER)\n");
  const ScopedFaults faults(file);
  VkInstance instance = VK_NULL_HANDLE;
  EXPECT_EQ(VulkanProgram::CreateInstance(&instance), VK_ERROR_INCOMPATIBLE_DRIVER);
  ASSERT_EQ(VulkanProgram::CreateInstance(&instance), VK_SUCCESS);
  vkDestroyInstance(instance, nullptr);
  EXPECT_EQ(file.Report()->instances, 2u);
}

TEST(LayerRulesTest, WithoutAReadablePlanThereIsNoInstance) {
  const FaultFile file("nonsense\n");
  const ScopedFaults faults(file);
  VkInstance instance = VK_NULL_HANDLE;
  EXPECT_EQ(VulkanProgram::CreateInstance(&instance), VK_ERROR_INITIALIZATION_FAILED);
}

TEST(LayerRulesTest, ARuleOfADeviceLeavesTheOthersAlone) {
  const FaultFile file("device one\ndevice two\n fault vkAllocateMemory:*:error(-2)\n");
  const ScopedFaults faults(file);
  EXPECT_EQ(AllocateAndFree(VulkanProgram(0)), VK_SUCCESS);
  EXPECT_EQ(AllocateAndFree(VulkanProgram(1)), VK_ERROR_OUT_OF_DEVICE_MEMORY);
}

TEST(LayerRulesTest, ADelayDelaysAndThenTheDriverAnswers) {
  const FaultFile file("fault vkFreeMemory:2:delay(300ms)\n");
  const ScopedFaults faults(file);
  const VulkanProgram program;
  ASSERT_EQ(AllocateAndFree(program), VK_SUCCESS);
  const absl::Time before = absl::Now();
  ASSERT_EQ(AllocateAndFree(program), VK_SUCCESS);
  EXPECT_GE(absl::Now() - before, absl::Milliseconds(300));
  EXPECT_EQ(file.Device("default").live_allocations, 0u);
  EXPECT_EQ(file.Device("default").faults, 1u);
}

TEST(LayerRulesTest, RulesCanComeWhileTheProcessRuns) {
  FaultFile file("");
  const ScopedFaults faults(file);
  const VulkanProgram program;
  ASSERT_EQ(AllocateAndFree(program), VK_SUCCESS);
  file.Write("fault vkAllocateMemory:2:error(-2)\n");
  // Counted from the change on.
  EXPECT_EQ(AllocateAndFree(program), VK_SUCCESS);
  EXPECT_EQ(AllocateAndFree(program), VK_ERROR_OUT_OF_DEVICE_MEMORY);
  file.Write("");
  EXPECT_EQ(AllocateAndFree(program), VK_SUCCESS);
}

// What became of the descriptor of an import that failed: true if it is open.
bool StaysOpenAfterAFailedImport(const char* rule) {
  const FaultFile file(rule);
  const ScopedFaults faults(file);
  const VulkanProgram program;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  EXPECT_EQ(program.Allocate(0, kPage, &memory), VK_SUCCESS);
  int fd = -1;
  EXPECT_EQ(program.Export(memory, &fd), VK_SUCCESS);
  VkDeviceMemory imported = VK_NULL_HANDLE;
  EXPECT_EQ(program.Import(fd, 0, kPage, &imported), VK_ERROR_INVALID_EXTERNAL_HANDLE);
  EXPECT_EQ(file.Device("default").CallsOf(faults::Function::kImport), 1u);
  EXPECT_EQ(file.Device("default").live_allocations, 1u);
  program.Free(memory);
  const bool open = fcntl(fd, F_GETFD) >= 0;
  if (open) close(fd);
  return open;
}

TEST(LayerRulesTest, AFailingImportClosesOrKeepsTheDescriptorAsTold) {
  EXPECT_FALSE(StaysOpenAfterAFailedImport("fault import:*:fail-and-close\n"));
  EXPECT_TRUE(StaysOpenAfterAFailedImport("fault import:*:fail-and-keep\n"));
}

}  // namespace
}  // namespace heapbroker
