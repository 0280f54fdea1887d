// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The functions that the layer puts in front of the driver's.
#ifndef TESTS_FAULTS_LAYER_CALLS_H_
#define TESTS_FAULTS_LAYER_CALLS_H_

#include <vulkan/vulkan.h>

#include "absl/types/span.h"

namespace heapbroker::faults {

struct EntryPoint {
  const char* name;
  PFN_vkVoidFunction function;
};

// Of instances: making and destroying them and their devices, listing.
absl::Span<const EntryPoint> InstanceCalls();
// Every question about a physical device that the layer lets through: each has to
// replace the handle.
absl::Span<const EntryPoint> PhysicalDeviceCalls();

// Of devices.
absl::Span<const EntryPoint> DeviceCalls();  // The device's end.
absl::Span<const EntryPoint> MemoryCalls();
absl::Span<const EntryPoint> RequirementCalls();  // Sizes and types of buffers and images.
absl::Span<const EntryPoint> ObjectCalls();       // Buffers, fences, command pools.
absl::Span<const EntryPoint> QueueCalls();
absl::Span<const EntryPoint> QueueFamilyCalls();  // Getting queues, ownership.

#define HB_ENTRY(name) \
  { "vk" #name, reinterpret_cast<PFN_vkVoidFunction>(name) }
#define HB_PROMOTED_ENTRY(name)                                  \
  {"vk" #name, reinterpret_cast<PFN_vkVoidFunction>(name)}, {    \
    "vk" #name "KHR", reinterpret_cast<PFN_vkVoidFunction>(name) \
  }

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_LAYER_CALLS_H_
