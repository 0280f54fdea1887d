// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Budgets as the fault layer tells them.
#include <vulkan/vulkan.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/faults/fault_file.h"
#include "tests/faults/vulkan_program.h"

namespace heapbroker {
namespace {

constexpr char kDevice[] = R"(
device gpu
  memoryHeap 1GiB device_local
  memoryHeap 2GiB none
  memoryType 0 device_local|host_visible|host_coherent
  memoryType 1 host_visible|host_coherent
  add VK_EXT_memory_budget
)";

std::string WithBudgets(const std::string& lines) { return kDevice + lines; }

TEST(LayerBudgetsTest, WithoutNumbersTheBudgetIsTheHeapAndTheUsageIsWhatIsAllocated) {
  const FaultFile file(kDevice);
  const ScopedFaults faults(file);
  const VulkanProgram program;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  ASSERT_EQ(program.Allocate(1, 1 << 20, &memory), VK_SUCCESS);
  const auto budgets = program.Budgets();
  EXPECT_EQ(budgets.heapBudget[0], VkDeviceSize{1} << 30);
  EXPECT_EQ(budgets.heapBudget[1], VkDeviceSize{2} << 30);
  EXPECT_EQ(budgets.heapBudget[2], 0u);
  EXPECT_EQ(budgets.heapUsage[0], 0u);
  EXPECT_EQ(budgets.heapUsage[1], VkDeviceSize{1} << 20);
  program.Free(memory);
  EXPECT_EQ(program.Budgets().heapUsage[1], 0u);
}

TEST(LayerBudgetsTest, NumbersMayBeNonsense) {
  const FaultFile file(WithBudgets(" heapBudget 0 64GiB 128GiB\n heapBudget 1 0 0\n"));
  const ScopedFaults faults(file);
  const auto budgets = VulkanProgram().Budgets();
  EXPECT_EQ(budgets.heapBudget[0], VkDeviceSize{64} << 30);
  EXPECT_EQ(budgets.heapUsage[0], VkDeviceSize{128} << 30);
  EXPECT_EQ(budgets.heapBudget[1], 0u);
}

TEST(LayerBudgetsTest, AChangedPlanTakesEffectWhileTheProcessRuns) {
  FaultFile file(WithBudgets(" heapBudget 0 700MiB\n"));
  const ScopedFaults faults(file);
  const VulkanProgram program;
  EXPECT_EQ(program.Budgets().heapBudget[0], VkDeviceSize{700} << 20);
  file.Write(WithBudgets(" heapBudget 0 300MiB 5MiB\n"));
  EXPECT_EQ(program.Budgets().heapBudget[0], VkDeviceSize{300} << 20);
  EXPECT_EQ(program.Budgets().heapUsage[0], VkDeviceSize{5} << 20);
}

TEST(LayerBudgetsTest, APlanThatCannotBeReadIsReportedOnceAndTheOldOneStays) {
  FaultFile file(WithBudgets(" heapBudget 0 700MiB\n"));
  const ScopedFaults faults(file);
  const VulkanProgram program;
  file.Write("nonsense");
  EXPECT_EQ(program.Budgets().heapBudget[0], VkDeviceSize{700} << 20);
  EXPECT_EQ(program.Budgets().heapBudget[0], VkDeviceSize{700} << 20);
  EXPECT_EQ(file.Report()->violation_count, 1u);
}

}  // namespace
}  // namespace heapbroker
