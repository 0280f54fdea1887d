// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// How much memory a program has from operator new.
#ifndef TESTS_BENCHMARK_ALLOCATED_BYTES_H_
#define TESTS_BENCHMARK_ALLOCATED_BYTES_H_

#include <cstddef>

namespace heapbroker {

// Of all threads; what the allocator rounds up to is in it. Linking this replaces the
// program's operator new and delete.
size_t AllocatedBytes();

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_ALLOCATED_BYTES_H_
