// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the classifier needs of a model file: fully connected layers, and where
// their numbers lie in one run of bytes that every process lays out alike.
#ifndef CLIENT_EXAMPLES_DIGITS_MODEL_H_
#define CLIENT_EXAMPLES_DIGITS_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "safetensors.h"

namespace digits {

// A tensor's place in the laid-out weights, in bytes.
struct Placement {
  uint64_t offset = 0;
  uint64_t size = 0;
};

// outputs = weight * inputs + bias; every layer but the last is followed by ReLU.
struct Layer {
  uint32_t inputs = 0;
  uint32_t outputs = 0;
  Placement weight;  // `outputs` rows of `inputs` floats.
  Placement bias;    // `outputs` floats.
};

// A multi-layer perceptron in a safetensors file. The numbers stay in the file
// until ReadWeights.
class Model {
 public:
  // Each tensor begins at a multiple of this in the laid-out weights: the most
  // that Vulkan lets a device ask for as minStorageBufferOffsetAlignment, so that
  // the layout does not depend on the device.
  static constexpr uint64_t kAlignment = 256;

  // Takes tensors fc1.weight [outputs, inputs], fc1.bias [outputs], fc2.weight,
  // and so on, all of F32 and nothing else, each layer as wide as the one before
  // it. The errors are SafetensorsFile::Open's, or INVALID_ARGUMENT that names
  // the tensor.
  static absl::StatusOr<Model> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<Layer>& layers() const { return layers_; }
  uint32_t inputs() const { return layers_.front().inputs; }
  uint32_t outputs() const { return layers_.back().outputs; }
  // Bytes of all laid-out weights, a multiple of kAlignment.
  uint64_t weights_size() const { return weights_size_; }

  // Fills `out` with the laid-out weights from `offset` on, zeros between the
  // tensors. The range must lie inside weights_size().
  absl::Status ReadWeights(uint64_t offset, absl::Span<uint8_t> out) const;

 private:
  struct Placed {
    const Tensor* tensor;  // Owned by the file, whose list does not move with it.
    Placement placement;
  };

  explicit Model(SafetensorsFile file) : file_(std::move(file)) {}

  absl::Status AddLayers();
  absl::Status AddLayer(int number);
  absl::StatusOr<const Tensor*> FindF32(const std::string& name, size_t rank) const;
  Placement Place(const Tensor& tensor);

  SafetensorsFile file_;
  std::vector<Layer> layers_;
  std::vector<Placed> placed_;  // By offset.
  uint64_t weights_size_ = 0;
};

}  // namespace digits
#endif  // CLIENT_EXAMPLES_DIGITS_MODEL_H_
