// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What the process may have, divided between its devices and its peers.
#ifndef DAEMON_APP_COUNT_LIMITS_H_
#define DAEMON_APP_COUNT_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/core/device_info.h"
#include "daemon/core/stats.h"

namespace heapbroker {

// Of the whole process.
struct ProcessLimits {
  uint64_t descriptors = 0;  // RLIMIT_NOFILE.
  uint64_t memory_maps = 0;  // vm.max_map_count.
};

// How many devices share them.
struct DeviceCounts {
  size_t all = 1;
  size_t software = 0;  // Of all; each of their blocks is a mapping of this process.
};

// Raises the limit of descriptors as far as it may be: each block keeps one open,
// and the usual 1024 exists for programs that use select().
ProcessLimits RaiseAndReadProcessLimits();

// Sessions or connections: `most`, or as many as have descriptors without taking
// those of blocks.
size_t MaxPeers(size_t most, uint64_t descriptors);

// Descriptors that sessions have not read, up to which several go in one packet; far
// enough below the kernel's limit, which is as high as that of open ones, for each
// session to have one more.
size_t FewUnreadDescriptors(uint64_t descriptors);

// How many blocks there may be on `device`, by each limit that there is, with a
// margin under each; the devices share evenly what is the process's.
std::vector<CountLimit> ChooseCountLimits(const DeviceInfo& device, const ProcessLimits& process,
                                          const DeviceCounts& devices);

}  // namespace heapbroker
#endif  // DAEMON_APP_COUNT_LIMITS_H_
