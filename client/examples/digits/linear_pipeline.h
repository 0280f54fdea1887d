// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The compute shader of one fully connected layer.
#ifndef CLIENT_EXAMPLES_DIGITS_LINEAR_PIPELINE_H_
#define CLIENT_EXAMPLES_DIGITS_LINEAR_PIPELINE_H_

#include <vulkan/vulkan.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heapbroker/memory_manager.h"

namespace digits {

// OK for VK_SUCCESS, else INTERNAL that names the call and the result.
absl::Status CheckVulkan(const char* call, VkResult result);

enum class Activation { kNone, kRelu };

// What one dispatch reads and writes.
struct LinearBuffers {
  heapbroker::BufferRange weight;
  heapbroker::BufferRange bias;
  heapbroker::BufferRange inputs;
  heapbroker::BufferRange outputs;
};

struct LinearShape {
  uint32_t inputs;   // Of one image.
  uint32_t outputs;  // Of one image.
  uint32_t images;
  Activation activation;
};

// Binds buffers to the shader and records its dispatches. The device must
// outlive this object, and this object all use of what it recorded. Not
// thread-safe.
class LinearPipeline {
 public:
  // `max_bindings` is how often Bind may be called.
  static absl::StatusOr<std::unique_ptr<LinearPipeline>> Create(
      VkDevice device, const VkPhysicalDeviceLimits& limits, uint32_t max_bindings);
  ~LinearPipeline();
  LinearPipeline(const LinearPipeline&) = delete;
  LinearPipeline& operator=(const LinearPipeline&) = delete;

  // Valid as long as this object. OUT_OF_RANGE for a range that the device
  // cannot bind: misaligned, or larger than maxStorageBufferRange.
  absl::StatusOr<VkDescriptorSet> Bind(const LinearBuffers& buffers);

  // Adds the dispatch to `commands`. `binding` came from Bind with ranges that
  // hold `shape`. Barriers are the caller's.
  void Record(VkCommandBuffer commands, VkDescriptorSet binding, const LinearShape& shape) const;

 private:
  LinearPipeline(VkDevice device, const VkPhysicalDeviceLimits& limits)
      : device_(device), limits_(limits) {}

  absl::Status CreateLayouts();
  absl::Status CreatePipelines();
  absl::Status CreatePool(uint32_t max_bindings);
  absl::Status CheckRange(const char* what, const heapbroker::BufferRange& range) const;

  const VkDevice device_;
  const VkPhysicalDeviceLimits limits_;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline plain_ = VK_NULL_HANDLE;
  VkPipeline with_relu_ = VK_NULL_HANDLE;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
};

}  // namespace digits
#endif  // CLIENT_EXAMPLES_DIGITS_LINEAR_PIPELINE_H_
