// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How many descriptors this process has, and may have.
#ifndef COMMON_POSIX_DESCRIPTORS_H_
#define COMMON_POSIX_DESCRIPTORS_H_

#include <cstdint>

namespace heapbroker {

// Descriptors that are open now, the counting's own left out. 0 where the
// process cannot be asked: /proc is not mounted, or there is no descriptor left
// to read it with. Before Linux 6.2 it takes time in proportion to the count.
uint64_t OpenDescriptorCount();

// The soft limit (RLIMIT_NOFILE). Where there is none, the largest value of the
// type.
uint64_t DescriptorLimit();

}  // namespace heapbroker
#endif  // COMMON_POSIX_DESCRIPTORS_H_
