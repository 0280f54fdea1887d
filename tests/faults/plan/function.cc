// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/function.h"

#include <array>

#include "absl/strings/str_join.h"

namespace heapbroker::faults {
namespace {

constexpr std::array<absl::string_view, kFunctionCount> kNames = {
    "vkCreateInstance",
    "vkCreateDevice",
    "vkDestroyDevice",
    "vkAllocateMemory",
    "import",
    "vkFreeMemory",
    "vkMapMemory",
    "vkGetMemoryFdKHR",
    "vkGetMemoryFdPropertiesKHR",
    "vkCreateBuffer",
    "vkBindBufferMemory",
    "vkGetBufferMemoryRequirements",
    "vkCreateFence",
    "vkWaitForFences",
    "vkCreateCommandPool",
    "vkQueueSubmit",
    "vkQueueWaitIdle",
    "vkDeviceWaitIdle",
};
static_assert(static_cast<size_t>(Function::kDeviceWaitIdle) + 1 == kFunctionCount);

}  // namespace

absl::string_view FunctionName(Function function) { return kNames[static_cast<size_t>(function)]; }

std::optional<Function> FindFunction(absl::string_view name) {
  for (size_t i = 0; i < kFunctionCount; ++i) {
    if (kNames[i] == name) return static_cast<Function>(i);
  }
  return std::nullopt;
}

std::string FunctionNames() { return absl::StrJoin(kNames, ", "); }

bool ReturnsResult(Function function) {
  return function != Function::kFreeMemory && function != Function::kDestroyDevice &&
         function != Function::kGetBufferMemoryRequirements;
}

bool IsOfInstance(Function function) { return function == Function::kCreateInstance; }

}  // namespace heapbroker::faults
