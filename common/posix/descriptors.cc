// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/descriptors.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <limits>
#include <memory>

namespace heapbroker {

namespace {

uint64_t ListedCount() {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc/self/fd"), closedir);
  if (directory == nullptr) return 0;
  uint64_t count = 0;
  while (const dirent* entry = readdir(directory.get())) count += entry->d_name[0] != '.' ? 1 : 0;
  return count - 1;  // The one that this function reads with.
}

uint64_t SizeOfTheDirectory() {
  struct stat directory {};
  return stat("/proc/self/fd", &directory) == 0 ? static_cast<uint64_t>(directory.st_size) : 0;
}

}  // namespace

uint64_t OpenDescriptorCount() {
  // Since Linux 6.2 the directory's size is the number of descriptors. Elsewhere it is
  // 0 or anything, so it is believed only where it agreed with the list once.
  static const bool kernel_counts = SizeOfTheDirectory() == ListedCount();
  return kernel_counts ? SizeOfTheDirectory() : ListedCount();
}

uint64_t DescriptorLimit() {
  rlimit limit{};
  // Cannot fail: the resource is one that Linux has, and `limit` can be written.
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur == RLIM_INFINITY ? std::numeric_limits<uint64_t>::max() : limit.rlim_cur;
}

}  // namespace heapbroker
