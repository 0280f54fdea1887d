// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A double of ExecuTorch's header, as of 2023.
#ifndef TESTS_FAKES_EXECUTORCH_2023_EXECUTORCH_RUNTIME_PLATFORM_RUNTIME_H_
#define TESTS_FAKES_EXECUTORCH_2023_EXECUTORCH_RUNTIME_PLATFORM_RUNTIME_H_

namespace torch::executor {

// Before anything is logged.
inline void runtime_init() {}

}  // namespace torch::executor

#endif  // TESTS_FAKES_EXECUTORCH_2023_EXECUTORCH_RUNTIME_PLATFORM_RUNTIME_H_
