// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The Vulkan calls that the fault layer counts and can break.
#ifndef TESTS_FAULTS_PLAN_FUNCTION_H_
#define TESTS_FAULTS_PLAN_FUNCTION_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace heapbroker::faults {

// In the order in which reports list them.
enum class Function : size_t {
  kCreateInstance,
  kCreateDevice,
  kDestroyDevice,
  kAllocateMemory,  // Imports too.
  kImport,          // vkAllocateMemory with VkImportMemoryFdInfoKHR.
  kFreeMemory,
  kMapMemory,
  kGetMemoryFd,
  kGetMemoryFdProperties,
  kCreateBuffer,
  kBindBufferMemory,             // Each binding of vkBindBufferMemory2 as well.
  kGetBufferMemoryRequirements,  // And vkGetBufferMemoryRequirements2.
  kCreateFence,
  kWaitForFences,
  kCreateCommandPool,
  kQueueSubmit,  // And vkQueueSubmit2.
  kQueueWaitIdle,
  kDeviceWaitIdle,
};
inline constexpr size_t kFunctionCount = 18;

// "vkAllocateMemory"; "import".
absl::string_view FunctionName(Function function);
// The function of that name, if it is one of these.
std::optional<Function> FindFunction(absl::string_view name);
// All names, for error messages.
std::string FunctionNames();

// Whether it has a VkResult, and so can be told to fail.
bool ReturnsResult(Function function);
// Whether it is made before there is a device to make it on.
bool IsOfInstance(Function function);

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_FUNCTION_H_
