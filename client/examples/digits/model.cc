// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace digits {

static_assert(std::endian::native == std::endian::little,
              "the numbers go from the file to the device as they are");

absl::StatusOr<Model> Model::Open(const std::string& path) {
  absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (!file.ok()) return file.status();
  Model model(*std::move(file));
  if (absl::Status status = model.AddLayers(); !status.ok()) return status;
  return model;
}

absl::Status Model::AddLayers() {
  const size_t tensors = file_.tensors().size();
  for (int number = 1; number == 1 || placed_.size() < tensors; ++number) {
    if (absl::Status status = AddLayer(number); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Model::AddLayer(int number) {
  const std::string name = absl::StrCat("fc", number);
  absl::StatusOr<const Tensor*> weight = FindF32(name + ".weight", 2);
  if (!weight.ok()) return weight.status();
  absl::StatusOr<const Tensor*> bias = FindF32(name + ".bias", 1);
  if (!bias.ok()) return bias.status();

  Layer layer;
  layer.outputs = static_cast<uint32_t>((*weight)->shape[0]);
  layer.inputs = static_cast<uint32_t>((*weight)->shape[1]);
  if ((*bias)->shape[0] != layer.outputs) {
    return file_.Malformed(absl::StrCat("tensor \"", name, ".bias\" has ", (*bias)->shape[0],
                                        " values, but \"", name, ".weight\" has ", layer.outputs,
                                        " rows"));
  }
  if (!layers_.empty() && layer.inputs != layers_.back().outputs) {
    return file_.Malformed(absl::StrCat("tensor \"", name, ".weight\" takes ", layer.inputs,
                                        " inputs, but the layer before it has ",
                                        layers_.back().outputs, " outputs"));
  }
  layer.weight = Place(**weight);
  layer.bias = Place(**bias);
  layers_.push_back(layer);
  return absl::OkStatus();
}

absl::StatusOr<const Tensor*> Model::FindF32(const std::string& name, size_t rank) const {
  const Tensor* tensor = file_.Find(name);
  if (tensor == nullptr) {
    return file_.Malformed(absl::StrCat(
        "has ", file_.tensors().size(), " tensors but none that is named \"", name,
        "\"; the classifier takes fc1.weight, fc1.bias, fc2.weight and so on, and no others"));
  }
  if (tensor->dtype != "F32" || tensor->shape.size() != rank) {
    return file_.Malformed(absl::StrCat("tensor \"", name, "\" has ", tensor->shape.size(),
                                        " dimensions of ", tensor->dtype, ", but needs ", rank,
                                        " of F32"));
  }
  for (const uint64_t dimension : tensor->shape) {
    if (dimension == 0 || dimension > std::numeric_limits<uint32_t>::max()) {
      return file_.Malformed(absl::StrCat("tensor \"", name, "\" has a dimension of ", dimension,
                                          ", which is not from 1 to 2^32-1"));
    }
  }
  return tensor;
}

Placement Model::Place(const Tensor& tensor) {
  // Cannot wrap: sizes add up to at most the file's, and every tensor has at
  // least four bytes, so the padding is at most 64 times as much.
  const Placement placement{weights_size_, tensor.size};
  placed_.push_back({&tensor, placement});
  weights_size_ += (tensor.size + kAlignment - 1) / kAlignment * kAlignment;
  return placement;
}

absl::Status Model::ReadWeights(uint64_t offset, absl::Span<uint8_t> out) const {
  const uint64_t end = offset + out.size();
  std::memset(out.data(), 0, out.size());
  for (const auto& [tensor, placement] : placed_) {
    const uint64_t from = std::max(offset, placement.offset);
    const uint64_t to = std::min(end, placement.offset + placement.size);
    if (from >= to) continue;
    absl::Status read =
        file_.Read(*tensor, from - placement.offset, out.subspan(from - offset, to - from));
    if (!read.ok()) return read;
  }
  return absl::OkStatus();
}

}  // namespace digits
