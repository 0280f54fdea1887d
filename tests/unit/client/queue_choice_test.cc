// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/queue_choice.h"

#include <vector>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

constexpr VkQueueFlags kTransfer = VK_QUEUE_TRANSFER_BIT;
constexpr VkQueueFlags kCompute = VK_QUEUE_COMPUTE_BIT | kTransfer;
constexpr VkQueueFlags kAll = VK_QUEUE_GRAPHICS_BIT | kCompute;

VkQueueFamilyProperties Family(VkQueueFlags flags, uint32_t queues = 1) {
  return {.queueFlags = flags, .queueCount = queues};
}

TEST(QueueChoiceTest, TransfersGoToTheFamilyThatDoesNothingElse) {
  const auto choice = ChooseQueues({Family(kAll, 16), Family(kTransfer, 2), Family(kCompute, 8)});
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->compute, (QueuePlace{.family = 0, .index = 0}));
  EXPECT_EQ(choice->transfer, (QueuePlace{.family = 1, .index = 0}));
}

TEST(QueueChoiceTest, OrToASecondQueueOfTheComputingFamily) {
  const auto choice = ChooseQueues({Family(VK_QUEUE_GRAPHICS_BIT), Family(kCompute, 2)});
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->compute, (QueuePlace{.family = 1, .index = 0}));
  EXPECT_EQ(choice->transfer, (QueuePlace{.family = 1, .index = 1}));
}

TEST(QueueChoiceTest, OrToTheOnlyQueueThereIs) {
  const auto choice = ChooseQueues({Family(kAll)});
  ASSERT_TRUE(choice.has_value());
  EXPECT_FALSE(choice->transfer.has_value());
  EXPECT_FALSE(ChooseQueues({Family(kAll), Family(kTransfer, 0)})->transfer.has_value());
}

TEST(QueueChoiceTest, WithoutAQueueThatComputesThereIsNone) {
  EXPECT_FALSE(ChooseQueues({Family(kTransfer), Family(VK_QUEUE_GRAPHICS_BIT)}).has_value());
  EXPECT_FALSE(ChooseQueues({}).has_value());
}

}  // namespace
}  // namespace heapbroker
