// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The program's standard output.
#ifndef CLIENT_CTL_OUTPUT_H_
#define CLIENT_CTL_OUTPUT_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace heapbroker {

// All of `text`, at once. DATA_LOSS if it cannot be written.
absl::Status WriteOutput(const std::string& text);

// Rows of the terminal that it is now; unset where it is none.
std::optional<size_t> OutputRows();

}  // namespace heapbroker
#endif  // CLIENT_CTL_OUTPUT_H_
