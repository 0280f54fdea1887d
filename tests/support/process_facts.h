// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the kernel says about a process, from /proc.
#ifndef TESTS_SUPPORT_PROCESS_FACTS_H_
#define TESTS_SUPPORT_PROCESS_FACTS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "heapbroker/units.h"

namespace heapbroker {

// All of them: NOT_FOUND when there is no such process, PERMISSION_DENIED when
// it is another user's.

// Descriptors that are open.
absl::StatusOr<size_t> OpenDescriptorCount(pid_t pid);

// What each open descriptor refers to, as in /proc/PID/fd: "socket:[123]".
absl::StatusOr<std::vector<std::string>> OpenDescriptors(pid_t pid);

// Memory that is resident now.
absl::StatusOr<Bytes> ResidentBytes(pid_t pid);

// Times that any of its threads gave up the processor to wait for something.
absl::StatusOr<uint64_t> VoluntaryContextSwitches(pid_t pid);

// Whether this thread waits for something.
absl::StatusOr<bool> Sleeps(pid_t thread);

// One line of /proc/PID/maps with a file behind it.
struct FileMapping {
  uint64_t inode;
  std::string path;  // Memory files read "/memfd:NAME (deleted)".
  Bytes size;
};
absl::StatusOr<std::vector<FileMapping>> FileMappings(pid_t pid);

}  // namespace heapbroker
#endif  // TESTS_SUPPORT_PROCESS_FACTS_H_
