// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/instance.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(VulkanInstanceTest, AMovedFromInstanceOwnsNothing) {
  absl::StatusOr<VulkanInstance> made = VulkanInstance::Create();
  ASSERT_TRUE(made.ok()) << made.status();
  VulkanInstance first = *std::move(made);
  const VkInstance handle = first.handle();
  VulkanInstance second = std::move(first);
  EXPECT_EQ(second.handle(), handle);
  EXPECT_GE(second.api_version(), VulkanInstance::kLowestApiVersion);
  EXPECT_LE(second.api_version(), VulkanInstance::kHighestApiVersion);
}

TEST(VulkanInstanceTest, SaysWhatToInstallWhereThereIsNoDriver) {
  // The loader looks for drivers each time that an instance is made.
  setenv("VK_DRIVER_FILES", "/nonexistent/driver.json", 1);
  setenv("VK_ICD_FILENAMES", "/nonexistent/driver.json", 1);
  const absl::StatusOr<VulkanInstance> made = VulkanInstance::Create();
  unsetenv("VK_DRIVER_FILES");
  unsetenv("VK_ICD_FILENAMES");
  EXPECT_EQ(made.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(made.status().message()),
              AllOf(HasSubstr("no Vulkan driver"), HasSubstr("mesa-vulkan-drivers"),
                    HasSubstr("VK_ICD_FILENAMES")));
}

}  // namespace
}  // namespace heapbroker
