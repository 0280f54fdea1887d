// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/result.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(ResultTest, SuccessIsOk) { EXPECT_TRUE(ResultToStatus(VK_SUCCESS, "vkCall").ok()); }

TEST(ResultTest, EachResultHasTheCodeThatTellsWhatToDo) {
  const std::pair<VkResult, absl::StatusCode> codes[] = {
      {VK_ERROR_OUT_OF_HOST_MEMORY, absl::StatusCode::kResourceExhausted},
      {VK_ERROR_OUT_OF_DEVICE_MEMORY, absl::StatusCode::kResourceExhausted},
      {VK_ERROR_TOO_MANY_OBJECTS, absl::StatusCode::kResourceExhausted},
      {VK_ERROR_FRAGMENTATION, absl::StatusCode::kResourceExhausted},
      {VK_ERROR_DEVICE_LOST, absl::StatusCode::kUnavailable},
      {VK_ERROR_INCOMPATIBLE_DRIVER, absl::StatusCode::kFailedPrecondition},
      {VK_ERROR_EXTENSION_NOT_PRESENT, absl::StatusCode::kFailedPrecondition},
      {VK_ERROR_INITIALIZATION_FAILED, absl::StatusCode::kInternal},
      {VK_ERROR_MEMORY_MAP_FAILED, absl::StatusCode::kInternal},
      {VK_ERROR_INVALID_EXTERNAL_HANDLE, absl::StatusCode::kInternal},
      {VK_ERROR_UNKNOWN, absl::StatusCode::kInternal},
      {VK_TIMEOUT, absl::StatusCode::kInternal}};
  for (const auto& [result, code] : codes) {
    const absl::Status status = ResultToStatus(result, "vkCall");
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("vkCall failed with "), HasSubstr(ResultName(result))));
  }
}

TEST(ResultTest, NamesResults) {
  EXPECT_EQ(ResultName(VK_SUCCESS), "VK_SUCCESS");
  EXPECT_EQ(ResultName(VK_ERROR_DEVICE_LOST), "VK_ERROR_DEVICE_LOST");
  EXPECT_EQ(ResultName(static_cast<VkResult>(-1234)), "VkResult -1234");
}

}  // namespace
}  // namespace heapbroker
