// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/descriptors.h"

#include <dirent.h>
#include <sys/resource.h>

#include <limits>
#include <memory>

namespace heapbroker {

uint64_t OpenDescriptorCount() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
  if (directory == nullptr) return 0;
  uint64_t count = 0;
  while (const dirent* entry = readdir(directory.get())) count += entry->d_name[0] != '.' ? 1 : 0;
  return count - 1;  // The one that this function reads with.
}

uint64_t DescriptorLimit() {
  rlimit limit{};
  // Cannot fail: the resource is one that Linux has, and `limit` can be written.
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<uint64_t>::max() : limit.rlim_cur;
}

}  // namespace heapbroker
