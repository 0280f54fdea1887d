// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A double of ExecuTorch's header, as of 2026.
#ifndef TESTS_FAKES_EXECUTORCH_TODAY_EXECUTORCH_RUNTIME_PLATFORM_RUNTIME_H_
#define TESTS_FAKES_EXECUTORCH_TODAY_EXECUTORCH_RUNTIME_PLATFORM_RUNTIME_H_

namespace executorch::runtime {

// Before anything is logged.
inline void runtime_init() {}

}  // namespace executorch::runtime

#endif  // TESTS_FAKES_EXECUTORCH_TODAY_EXECUTORCH_RUNTIME_PLATFORM_RUNTIME_H_
