// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Reads IDX files, the format of the MNIST images and labels: two zero bytes,
// the element type, the number of dimensions, each dimension as a big-endian
// 32-bit number, then the elements, the last dimension fastest.
#ifndef CLIENT_EXAMPLES_DIGITS_IDX_H_
#define CLIENT_EXAMPLES_DIGITS_IDX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace digits {

struct IdxArray {
  std::vector<uint32_t> dimensions;
  std::vector<uint8_t> elements;  // As many as the product of `dimensions`.
};

// Reads a file of unsigned bytes with `rank` dimensions, 1 to 3. Anything else,
// and a file that is shorter or longer than its dimensions say, is an error that
// names the path and what is wrong; memory is taken only for what is there.
absl::StatusOr<IdxArray> ReadIdx(const std::string& path, int rank);

}  // namespace digits
#endif  // CLIENT_EXAMPLES_DIGITS_IDX_H_
