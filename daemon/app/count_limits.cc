// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/count_limits.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>

namespace heapbroker {
namespace {

// The kernel's own default, where it does not say.
constexpr uint64_t kUsualMemoryMaps = 65530;

// Half of the descriptors, at most this many, are for sessions and connections.
constexpr uint64_t kMostDescriptorsForPeers = 4096;
// A session has its socket, a pidfd and a gRPC connection, which has a duplicate.
constexpr uint64_t kDescriptorsPerPeer = 4;
// The one that is exported, and the one that a software driver keeps beside it.
constexpr uint64_t kDescriptorsPerBlock = 2;

// Half of the mappings, at most this many, are for libraries, stacks and the heap.
constexpr uint64_t kMostMapsForTheRest = 4096;
// That of the driver, and one while the daemon clears the block.
constexpr uint64_t kMapsPerBlock = 2;

// The driver's own allocations may count.
constexpr uint64_t kMostAllocationsOfTheDriver = 16;

uint64_t DescriptorsForPeers(uint64_t descriptors) {
  return std::min(kMostDescriptorsForPeers, descriptors / 2);
}

uint64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (limit.rlim_cur < limit.rlim_max) {
    const rlimit raised{limit.rlim_max, limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  return limit.rlim_cur;
}

}  // namespace

ProcessLimits RaiseAndReadProcessLimits() {
  ProcessLimits limits{RaiseDescriptorLimit(), 0};
  std::ifstream file("/proc/sys/vm/max_map_count");
  if (!(file >> limits.memory_maps)) limits.memory_maps = kUsualMemoryMaps;
  return limits;
}

size_t MaxPeers(size_t most, uint64_t descriptors) {
  return std::min<size_t>(most, DescriptorsForPeers(descriptors) / kDescriptorsPerPeer);
}

size_t FewUnreadDescriptors(uint64_t descriptors) { return descriptors / 4; }

std::vector<CountLimit> ChooseCountLimits(const DeviceInfo& device, const ProcessLimits& process,
                                          const DeviceCounts& devices) {
  const uint64_t descriptors = process.descriptors - DescriptorsForPeers(process.descriptors);
  std::vector<CountLimit> limits;
  // The largest number that the property can have is how drivers say "no limit".
  if (device.max_allocation_count < std::numeric_limits<uint32_t>::max()) {
    const uint64_t margin =
        std::min<uint64_t>(kMostAllocationsOfTheDriver, device.max_allocation_count / 8);
    limits.push_back({LimitKind::kMaxAllocationCount, device.max_allocation_count - margin});
  }
  limits.push_back({LimitKind::kDescriptors, descriptors / devices.all / kDescriptorsPerBlock});
  if (device.software()) {
    const uint64_t rest = std::min(kMostMapsForTheRest, process.memory_maps / 2);
    limits.push_back(
        {LimitKind::kMemoryMaps, (process.memory_maps - rest) / devices.software / kMapsPerBlock});
  }
  return limits;
}

}  // namespace heapbroker
