// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A double of ExecuTorch's header, as of 2023.
#ifndef TESTS_FAKES_EXECUTORCH_2023_EXECUTORCH_RUNTIME_PLATFORM_LOG_H_
#define TESTS_FAKES_EXECUTORCH_2023_EXECUTORCH_RUNTIME_PLATFORM_LOG_H_

#include <cstdio>

// The reason goes to standard error, as ExecuTorch's does by default.
#define ET_LOG(level, format, ...) \
  std::fprintf(stderr, #level ": " format "\n" __VA_OPT__(, ) __VA_ARGS__)

#endif  // TESTS_FAKES_EXECUTORCH_2023_EXECUTORCH_RUNTIME_PLATFORM_LOG_H_
