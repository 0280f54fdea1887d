// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What a driver meant when it said that it is out of something. Drivers have two
// words for all of it, out of host memory and out of device memory, also where it
// was the kernel that refused them a descriptor or a mapping.
#ifndef DAEMON_VULKAN_DRIVER_ERROR_H_
#define DAEMON_VULKAN_DRIVER_ERROR_H_

#include <vulkan/vulkan.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace heapbroker {

// What the kernel still gave this process right after the driver failed.
struct ProcessLimits {
  enum class Descriptors {
    kAvailable,
    kProcessLimit,  // RLIMIT_NOFILE.
    kSystemLimit,   // fs.file-max.
  };
  Descriptors descriptors = Descriptors::kAvailable;
  uint64_t descriptor_limit = 0;  // RLIMIT_NOFILE.
  // Mappings, and vm.max_map_count; both 0 where the kernel does not say.
  uint64_t memory_maps = 0;
  uint64_t memory_map_limit = 0;
};

// A driver may take several of each for one allocation and give back what it had
// before it failed, so a process counts as at its limit when it is this near.
inline constexpr uint64_t kNearDescriptorLimit = 4;
inline constexpr uint64_t kNearMemoryMapLimit = 16;

// Looks, by taking descriptors for a moment and by counting mappings. May take
// milliseconds: for use after a failure only. Thread-safe.
ProcessLimits ReadProcessLimits();

// Pure: `result` of `call` in the light of `limits`. RESOURCE_EXHAUSTED that names
// the limit the process is at, with its figures and how it is raised, and with the
// same for RefusalOf (kDescriptors, kMemoryMaps), for results that drivers give for
// it: out of host or device memory, too many objects, a failed mapping, an invalid
// external handle. Otherwise, and where no limit is near, as ResultToStatus.
absl::Status ExplainDriverError(VkResult result, absl::string_view call,
                                const ProcessLimits& limits);

// The same for a call that reported success and gave no descriptor.
// RESOURCE_EXHAUSTED, whether or not a limit is near.
absl::Status ExplainMissingDescriptor(absl::string_view call, const ProcessLimits& limits);

// OK for VK_SUCCESS; otherwise the first two of the above.
absl::Status DriverStatus(VkResult result, absl::string_view call);

}  // namespace heapbroker
#endif  // DAEMON_VULKAN_DRIVER_ERROR_H_
