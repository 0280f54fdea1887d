// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The same model on the CPU, as plainly as it can be written: what the GPU's
// answers are compared with.
#ifndef TESTS_INTEGRATION_DIGITS_CPU_CLASSIFIER_H_
#define TESTS_INTEGRATION_DIGITS_CPU_CLASSIFIER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/examples/digits/dataset.h"

namespace digits {

// How many images of `dataset` the model in the safetensors file answers right.
absl::StatusOr<uint32_t> CountCorrectOnCpu(const std::string& model_path, const Dataset& dataset);

}  // namespace digits
#endif  // TESTS_INTEGRATION_DIGITS_CPU_CLASSIFIER_H_
