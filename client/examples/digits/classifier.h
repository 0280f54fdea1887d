// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Runs the model on the device, over brokered memory only.
#ifndef CLIENT_EXAMPLES_DIGITS_CLASSIFIER_H_
#define CLIENT_EXAMPLES_DIGITS_CLASSIFIER_H_

#include <vulkan/vulkan.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "heapbroker/memory_manager.h"
#include "heapbroker/vulkan_importer.h"
#include "linear_pipeline.h"
#include "model.h"

namespace digits {

// Images that go through the layers together: as many as there are, and as the
// device can bind the activations of; at least 1.
uint32_t ChooseBatch(const Model& model, uint32_t image_count,
                     const VkPhysicalDeviceLimits& limits);

// What Classifier needs of a memory manager. The weights are the constant
// memory. The planned buffers are the activations of a batch: memory id 0 the
// images, memory id n the outputs of layer n. The kernel temporary arena takes a
// batch of images on its way in and the scores on their way out.
heapbroker::MemoryPlan PlanMemory(const Model& model, uint32_t batch);

// Not thread-safe; uses the importer's queue. What it was made of must outlive
// it, and `memory` must hold sealed weights and have been made by
// PlanMemory(model, batch).
class Classifier {
 public:
  struct Resources {
    const Model& model;
    heapbroker::VulkanImporter& importer;
    const heapbroker::MemoryManager& memory;
    LinearPipeline& pipeline;  // With a binding left for each layer.
    uint32_t batch;
  };
  static absl::StatusOr<std::unique_ptr<Classifier>> Create(const Resources& resources);

  // For each image the output with the highest score. `pixels` is a whole number
  // of images.
  absl::StatusOr<std::vector<uint32_t>> Classify(absl::Span<const uint8_t> pixels);

 private:
  explicit Classifier(const Resources& resources) : resources_(resources) {}

  absl::Status BindMemory();
  absl::Status BindLayer(uint32_t number);
  absl::Status RunBatch(absl::Span<const uint8_t> pixels, std::vector<uint32_t>& answers);
  void Record(VkCommandBuffer commands, uint32_t images) const;

  const Resources resources_;
  heapbroker::BufferRange upload_;
  heapbroker::BufferRange download_;
  heapbroker::BufferRange inputs_;
  heapbroker::BufferRange scores_;
  std::vector<VkDescriptorSet> bindings_;  // One for each layer.
};

}  // namespace digits
#endif  // CLIENT_EXAMPLES_DIGITS_CLASSIFIER_H_
