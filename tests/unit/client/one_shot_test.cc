// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/one_shot.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using ::testing::ElementsAre;

// What a driver is told and answers. The functions below are this program's, and
// the linker takes them before the loader's.
struct Driver {
  VkResult submit = VK_SUCCESS;
  VkResult wait = VK_SUCCESS;
  std::vector<std::string> calls;
};
Driver* driver = nullptr;

VkResult Note(const char* call, VkResult result = VK_SUCCESS) {
  driver->calls.push_back(call);
  return result;
}

class OneShotTest : public testing::Test {
 protected:
  OneShotTest() { driver = &driver_; }
  ~OneShotTest() override { driver = nullptr; }

  static absl::Status Run() {
    return RunOnce(VulkanContext{}, [](VkCommandBuffer) { Note("record"); });
  }

  Driver driver_;
};

TEST_F(OneShotTest, DestroysNothingBeforeTheDeviceIsDone) {
  EXPECT_THAT(Run(), IsOk());
  EXPECT_THAT(driver_.calls,
              ElementsAre("record", "submit", "wait", "destroy fence", "destroy pool"));
}

TEST_F(OneShotTest, AfterAFailedWaitDestroysNothingBeforeTheQueueIsIdle) {
  driver_.wait = VK_ERROR_OUT_OF_HOST_MEMORY;
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kResourceExhausted, "vkWaitForFences"));
  EXPECT_THAT(driver_.calls, ElementsAre("record", "submit", "wait", "wait for queue",
                                         "destroy fence", "destroy pool"));
}

TEST_F(OneShotTest, DoesNotWaitForWhatWasNotSubmitted) {
  driver_.submit = VK_ERROR_DEVICE_LOST;
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kUnavailable, "vkQueueSubmit"));
  EXPECT_THAT(driver_.calls, ElementsAre("record", "submit", "destroy fence", "destroy pool"));
}

}  // namespace
}  // namespace heapbroker

extern "C" {

VkResult vkCreateFence(VkDevice, const VkFenceCreateInfo*, const VkAllocationCallbacks*, VkFence*) {
  return VK_SUCCESS;
}
VkResult vkCreateCommandPool(VkDevice, const VkCommandPoolCreateInfo*, const VkAllocationCallbacks*,
                             VkCommandPool*) {
  return VK_SUCCESS;
}
VkResult vkAllocateCommandBuffers(VkDevice, const VkCommandBufferAllocateInfo*, VkCommandBuffer*) {
  return VK_SUCCESS;
}
VkResult vkBeginCommandBuffer(VkCommandBuffer, const VkCommandBufferBeginInfo*) {
  return VK_SUCCESS;
}
VkResult vkEndCommandBuffer(VkCommandBuffer) { return VK_SUCCESS; }
VkResult vkQueueSubmit(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
  return heapbroker::Note("submit", heapbroker::driver->submit);
}
VkResult vkWaitForFences(VkDevice, uint32_t, const VkFence*, VkBool32, uint64_t) {
  return heapbroker::Note("wait", heapbroker::driver->wait);
}
VkResult vkQueueWaitIdle(VkQueue) { return heapbroker::Note("wait for queue"); }
void vkDestroyFence(VkDevice, VkFence, const VkAllocationCallbacks*) {
  heapbroker::Note("destroy fence");
}
void vkDestroyCommandPool(VkDevice, VkCommandPool, const VkAllocationCallbacks*) {
  heapbroker::Note("destroy pool");
}

}  // extern "C"
