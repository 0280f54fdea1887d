// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The JSON header of a safetensors file.
#ifndef CLIENT_EXAMPLES_DIGITS_SAFETENSORS_HEADER_H_
#define CLIENT_EXAMPLES_DIGITS_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "safetensors.h"

namespace digits {

// The tensors that `header` describes, ordered by their bytes; `data_start` is
// where those bytes begin in the file and `data_size` how many there are. Every
// broken rule is an INVALID_ARGUMENT that says which tensor or which byte of the
// file; the caller adds the path.
absl::StatusOr<std::vector<Tensor>> ParseSafetensorsHeader(absl::string_view header,
                                                           uint64_t data_start, uint64_t data_size);

}  // namespace digits
#endif  // CLIENT_EXAMPLES_DIGITS_SAFETENSORS_HEADER_H_
