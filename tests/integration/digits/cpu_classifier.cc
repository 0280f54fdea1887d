// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/digits/cpu_classifier.h"

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/examples/digits/safetensors.h"

namespace digits {
namespace {

absl::StatusOr<std::vector<float>> ReadFloats(const SafetensorsFile& file,
                                              const std::string& name) {
  const Tensor* tensor = file.Find(name);
  if (tensor == nullptr) return absl::NotFoundError(name);
  std::vector<float> values(tensor->size / sizeof(float));
  absl::Status read = file.Read(
      *tensor, 0, absl::MakeSpan(reinterpret_cast<uint8_t*>(values.data()), tensor->size));
  if (!read.ok()) return read;
  return values;
}

struct CpuLayer {
  std::vector<float> weight;
  std::vector<float> bias;
};

std::vector<float> Apply(const CpuLayer& layer, const std::vector<float>& input) {
  std::vector<float> output = layer.bias;
  const float* row = layer.weight.data();
  for (float& value : output) {
    const float* in = input.data();
    for (size_t k = 0; k < input.size(); ++k) value += row[k] * in[k];
    row += input.size();
  }
  return output;
}

uint32_t Answer(const std::vector<CpuLayer>& layers, absl::Span<const uint8_t> pixels) {
  std::vector<float> values;
  for (const uint8_t pixel : pixels) values.push_back(static_cast<float>(pixel) / 255.0f);
  for (size_t i = 0; i < layers.size(); ++i) {
    values = Apply(layers[i], values);
    if (i + 1 == layers.size()) break;
    for (float& value : values) value = std::max(value, 0.0f);
  }
  return static_cast<uint32_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

}  // namespace

absl::StatusOr<uint32_t> CountCorrectOnCpu(const std::string& model_path, const Dataset& dataset) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(model_path);
  if (!file.ok()) return file.status();
  std::vector<CpuLayer> layers;
  for (const char* name : {"fc1", "fc2", "fc3"}) {
    absl::StatusOr<std::vector<float>> weight = ReadFloats(*file, absl::StrCat(name, ".weight"));
    if (!weight.ok()) return weight.status();
    absl::StatusOr<std::vector<float>> bias = ReadFloats(*file, absl::StrCat(name, ".bias"));
    if (!bias.ok()) return bias.status();
    layers.push_back({*std::move(weight), *std::move(bias)});
  }
  uint32_t correct = 0;
  for (uint32_t i = 0; i < dataset.image_count; ++i) {
    const auto pixels =
        absl::MakeConstSpan(dataset.pixels)
            .subspan(size_t{i} * dataset.pixels_per_image, dataset.pixels_per_image);
    correct += Answer(layers, pixels) == dataset.labels[i];
  }
  return correct;
}

}  // namespace digits
