// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Files for the tests of the digits example, good and bad.
#ifndef TESTS_INTEGRATION_DIGITS_SAMPLE_FILES_H_
#define TESTS_INTEGRATION_DIGITS_SAMPLE_FILES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace digits {

// The files that come with the example.
std::string ModelPath();
std::string ImagesPath();
std::string LabelsPath();

// Both end the test program if the file cannot be read or written.
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, absl::string_view contents);

// A safetensors file of this header, whatever it is, and `data_bytes` bytes that
// count up.
std::string Safetensors(absl::string_view header, uint64_t data_bytes);

// As above with a header of six tensors for a model of 4 inputs, layers of 3 and
// 2 and 2 outputs, all of F32.
std::string SmallModel();

// The example's model with one row of fc3.weight zeroed: a model of the same
// shape that gives one of its answers only by chance.
std::string ModelWithZeroedRow(uint32_t row);

}  // namespace digits
#endif  // TESTS_INTEGRATION_DIGITS_SAMPLE_FILES_H_
