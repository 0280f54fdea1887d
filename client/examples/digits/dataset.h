// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Images and what they show.
#ifndef CLIENT_EXAMPLES_DIGITS_DATASET_H_
#define CLIENT_EXAMPLES_DIGITS_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace digits {

struct Dataset {
  uint32_t image_count = 0;
  uint32_t pixels_per_image = 0;
  std::vector<uint8_t> pixels;  // Image after image; 255 is the strongest ink.
  std::vector<uint8_t> labels;  // One for each image.
};

// Reads two IDX files: images (count x rows x columns) and labels (count). The
// errors are ReadIdx's, or INVALID_ARGUMENT where the two disagree.
absl::StatusOr<Dataset> LoadDataset(const std::string& images_path, const std::string& labels_path);

}  // namespace digits
#endif  // CLIENT_EXAMPLES_DIGITS_DATASET_H_
