// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/driver_error.h"

#include <optional>
#include <string>

#include "daemon/core/refusal.h"
#include "daemon/vulkan/result.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Descriptors = ProcessLimits::Descriptors;

constexpr VkResult kOutOfSomething[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                        VK_ERROR_TOO_MANY_OBJECTS, VK_ERROR_MEMORY_MAP_FAILED,
                                        VK_ERROR_INVALID_EXTERNAL_HANDLE};

// A process with room for everything.
ProcessLimits Room() {
  ProcessLimits limits;
  limits.descriptor_limit = 1024;
  limits.memory_maps = 300;
  limits.memory_map_limit = 65530;
  return limits;
}

std::string Explained(VkResult result, const ProcessLimits& limits) {
  const absl::Status status = ExplainDriverError(result, "vkCall", limits);
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

TEST(DriverErrorTest, WithRoomForEverythingTheDriversWordStands) {
  for (VkResult result : kOutOfSomething) {
    EXPECT_EQ(ExplainDriverError(result, "vkCall", Room()), ResultToStatus(result, "vkCall"));
  }
}

TEST(DriverErrorTest, AtTheDescriptorLimitNamesItWhateverTheDriverSays) {
  ProcessLimits limits = Room();
  limits.descriptors = Descriptors::kProcessLimit;
  for (VkResult result : kOutOfSomething) {
    EXPECT_EQ(ExplainDriverError(result, "vkCall", limits).code(),
              absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(Explained(result, limits),
                AllOf(HasSubstr("vkCall failed with " + ResultName(result)), HasSubstr("1024"),
                      HasSubstr("RLIMIT_NOFILE"), HasSubstr("LimitNOFILE="),
                      Not(HasSubstr("out of device memory"))));
  }
}

TEST(DriverErrorTest, TheCoreLearnsWhichLimitItWasAndThatMemoryWasNotTheCause) {
  ProcessLimits limits = Room();
  EXPECT_EQ(RefusalOf(ExplainDriverError(VK_ERROR_OUT_OF_DEVICE_MEMORY, "vkCall", limits)),
            std::nullopt);
  limits.memory_maps = 65529;
  std::optional<Refusal> refusal =
      RefusalOf(ExplainDriverError(VK_ERROR_OUT_OF_DEVICE_MEMORY, "vkCall", limits));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->limit, LimitKind::kMemoryMaps);
  EXPECT_EQ(refusal->value, 65530U);
  EXPECT_EQ(refusal->in_use, 65529U);
  limits.descriptors = Descriptors::kProcessLimit;
  refusal = RefusalOf(ExplainDriverError(VK_ERROR_OUT_OF_DEVICE_MEMORY, "vkCall", limits));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->limit, LimitKind::kDescriptors);
  EXPECT_EQ(refusal->value, 1024U);
  EXPECT_EQ(refusal->kind, RefusalKind::kLimitReached);
}

TEST(DriverErrorTest, TheMachinesDescriptorLimitIsNotTheProcesss) {
  ProcessLimits limits = Room();
  limits.descriptors = Descriptors::kSystemLimit;
  EXPECT_THAT(Explained(VK_ERROR_OUT_OF_DEVICE_MEMORY, limits),
              AllOf(HasSubstr("fs.file-max"), Not(HasSubstr("RLIMIT_NOFILE"))));
}

TEST(DriverErrorTest, NearTheLimitOfMappingsNamesItWithFigures) {
  ProcessLimits limits = Room();
  for (uint64_t maps : {limits.memory_map_limit - kNearMemoryMapLimit, limits.memory_map_limit,
                        limits.memory_map_limit + 1}) {
    limits.memory_maps = maps;
    for (VkResult result : kOutOfSomething) {
      EXPECT_EQ(ExplainDriverError(result, "vkCall", limits).code(),
                absl::StatusCode::kResourceExhausted);
      EXPECT_THAT(Explained(result, limits),
                  AllOf(HasSubstr("vm.max_map_count"), HasSubstr(std::to_string(maps)),
                        HasSubstr("65530"), Not(HasSubstr("out of device memory"))));
    }
  }
  limits.memory_maps = limits.memory_map_limit - kNearMemoryMapLimit - 1;
  EXPECT_THAT(Explained(VK_ERROR_OUT_OF_DEVICE_MEMORY, limits), Not(HasSubstr("vm.max_map_count")));
}

TEST(DriverErrorTest, ALimitThatTheKernelDoesNotTellIsNotNamed) {
  ProcessLimits limits = Room();
  limits.memory_maps = 0;
  limits.memory_map_limit = 0;
  EXPECT_THAT(Explained(VK_ERROR_OUT_OF_DEVICE_MEMORY, limits), Not(HasSubstr("vm.max_map_count")));
}

TEST(DriverErrorTest, OtherErrorsAreNeverTheLimits) {
  ProcessLimits limits = Room();
  limits.descriptors = Descriptors::kProcessLimit;
  limits.memory_maps = limits.memory_map_limit;
  for (VkResult result :
       {VK_SUCCESS, VK_ERROR_DEVICE_LOST, VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_UNKNOWN}) {
    EXPECT_EQ(ExplainDriverError(result, "vkCall", limits), ResultToStatus(result, "vkCall"));
  }
}

TEST(DriverErrorTest, AMissingDescriptorIsExplainedAndNeverPassedOn) {
  const absl::Status unexplained = ExplainMissingDescriptor("vkCall", Room());
  EXPECT_EQ(unexplained.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(unexplained.message()),
              AllOf(HasSubstr("gave no descriptor"), Not(HasSubstr("RLIMIT_NOFILE"))));
  ProcessLimits limits = Room();
  limits.descriptors = Descriptors::kProcessLimit;
  EXPECT_THAT(std::string(ExplainMissingDescriptor("vkCall", limits).message()),
              HasSubstr("RLIMIT_NOFILE"));
}

TEST(ProcessLimitsTest, AProcessWithRoomIsSeenToHaveIt) {
  const ProcessLimits limits = ReadProcessLimits();
  EXPECT_EQ(limits.descriptors, Descriptors::kAvailable);
  EXPECT_GT(limits.descriptor_limit, 0U);
  EXPECT_GT(limits.memory_maps, 10U);
  EXPECT_GT(limits.memory_map_limit, limits.memory_maps);
}

}  // namespace
}  // namespace heapbroker
