// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One copy of a model's weights for all processes: whichever comes first loads
// them from the file, the others find them in the segment.
#ifndef CLIENT_EXAMPLES_DIGITS_WEIGHTS_H_
#define CLIENT_EXAMPLES_DIGITS_WEIGHTS_H_

#include <string>

#include "absl/status/statusor.h"
#include "heapbroker/memory_manager.h"
#include "heapbroker/types.h"
#include "model.h"

namespace digits {

// Of the laid-out weights: what their segment's checksum has to be.
absl::StatusOr<heapbroker::Checksum> WeightsChecksum(const Model& model);

// A name that only a model with the same weights gets: "digits-" and the
// checksum. A file that is trained again gets a segment of its own, while the
// old one stays for those who still use it.
std::string SegmentName(heapbroker::Checksum checksum);

enum class WeightsOrigin { kLoaded, kAttached };

// Fills and seals the segment where that is this process's part, else checks
// that it holds the model's weights: those of `expected`.
//   FAILED_PRECONDITION  it holds others, or the file changed since `expected`
//                        was computed (then nothing is sealed)
//   or an error of reading the file or of the allocator
absl::StatusOr<WeightsOrigin> ProvideWeights(const Model& model, heapbroker::Checksum expected,
                                             heapbroker::ConstantAllocator& weights);

}  // namespace digits
#endif  // CLIENT_EXAMPLES_DIGITS_WEIGHTS_H_
