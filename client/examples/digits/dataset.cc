// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "dataset.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "idx.h"

namespace digits {

absl::StatusOr<Dataset> LoadDataset(const std::string& images_path,
                                    const std::string& labels_path) {
  absl::StatusOr<IdxArray> images = ReadIdx(images_path, 3);
  if (!images.ok()) return images.status();
  absl::StatusOr<IdxArray> labels = ReadIdx(labels_path, 1);
  if (!labels.ok()) return labels.status();

  Dataset dataset;
  dataset.image_count = images->dimensions[0];
  if (labels->dimensions[0] != dataset.image_count) {
    return absl::InvalidArgumentError(absl::StrCat(images_path, " has ", dataset.image_count,
                                                   " images, but ", labels_path, " has ",
                                                   labels->dimensions[0], " labels"));
  }
  const uint64_t pixels = images->elements.size() / dataset.image_count;
  if (pixels > std::numeric_limits<uint32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat(images_path, ": an image has ", pixels, " pixels, more than 2^32-1"));
  }
  dataset.pixels_per_image = static_cast<uint32_t>(pixels);
  dataset.pixels = std::move(images->elements);
  dataset.labels = std::move(labels->elements);
  return dataset;
}

}  // namespace digits
