// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The library's own sub-allocator and the standard library's, to be measured.
#ifndef TESTS_BENCHMARK_SUBALLOCATORS_H_
#define TESTS_BENCHMARK_SUBALLOCATORS_H_

#include "heapbroker/units.h"
#include "tests/benchmark/contender.h"
#include "tests/benchmark/measured_session.h"

namespace heapbroker {

// Of blocks without memory behind them: more than any trace needs, so that what is
// measured is how much of it is used.
inline constexpr Bytes kVirtualSize = GiB(256);

// RangeAllocator; for several threads two of them as DeviceAllocator keeps them, which
// is what it has from its second block on.
Contender Ranges();

// DeviceAllocator, over blocks that the session leases. It must outlive it.
Contender Leases(MeasuredSession& session);

// std::pmr::unsynchronized_pool_resource, over the heap, with pools for all sizes that
// it can have pools for; for several threads behind a mutex.
Contender Pools();

}  // namespace heapbroker
#endif  // TESTS_BENCHMARK_SUBALLOCATORS_H_
