// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/examples/digits/linear_pipeline.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "heapbroker/vulkan_importer.h"

namespace digits {
namespace {

// SPIR-V words that the build makes of shaders/linear.comp.
constexpr uint32_t kLinearSpirv[] = {
#include "linear.comp.inc"
};

// As in the shader.
constexpr uint32_t kWorkgroupSize = 64;
constexpr uint32_t kBufferCount = 4;
struct PushConstants {
  uint32_t input_count;
  uint32_t output_count;
  uint32_t total;
};

}  // namespace

absl::Status CheckVulkan(const char* call, VkResult result) {
  if (result == VK_SUCCESS) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(call, " failed with VkResult ", static_cast<int>(result)));
}

absl::StatusOr<std::unique_ptr<LinearPipeline>> LinearPipeline::Create(
    VkDevice device, const VkPhysicalDeviceLimits& limits, uint32_t max_bindings) {
  std::unique_ptr<LinearPipeline> pipeline(new LinearPipeline(device, limits));
  if (absl::Status status = pipeline->CreateLayouts(); !status.ok()) return status;
  if (absl::Status status = pipeline->CreatePipelines(); !status.ok()) return status;
  if (absl::Status status = pipeline->CreatePool(max_bindings); !status.ok()) return status;
  return pipeline;
}

LinearPipeline::~LinearPipeline() {
  vkDestroyDescriptorPool(device_, pool_, nullptr);
  vkDestroyPipeline(device_, with_relu_, nullptr);
  vkDestroyPipeline(device_, plain_, nullptr);
  vkDestroyPipelineLayout(device_, layout_, nullptr);
  vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
}

absl::Status LinearPipeline::CreateLayouts() {
  std::array<VkDescriptorSetLayoutBinding, kBufferCount> bindings{};
  for (uint32_t i = 0; i < kBufferCount; ++i) {
    bindings[i].binding = i;
    bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    bindings[i].descriptorCount = 1;
    bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
  }
  VkDescriptorSetLayoutCreateInfo set_info{};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.bindingCount = kBufferCount;
  set_info.pBindings = bindings.data();
  absl::Status status =
      CheckVulkan("vkCreateDescriptorSetLayout",
                  vkCreateDescriptorSetLayout(device_, &set_info, nullptr, &set_layout_));
  if (!status.ok()) return status;

  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(PushConstants)};
  VkPipelineLayoutCreateInfo layout_info{};
  layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout_info.setLayoutCount = 1;
  layout_info.pSetLayouts = &set_layout_;
  layout_info.pushConstantRangeCount = 1;
  layout_info.pPushConstantRanges = &push;
  return CheckVulkan("vkCreatePipelineLayout",
                     vkCreatePipelineLayout(device_, &layout_info, nullptr, &layout_));
}

absl::Status LinearPipeline::CreatePipelines() {
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = sizeof(kLinearSpirv);
  module_info.pCode = kLinearSpirv;
  VkShaderModule module = VK_NULL_HANDLE;
  absl::Status status = CheckVulkan("vkCreateShaderModule",
                                    vkCreateShaderModule(device_, &module_info, nullptr, &module));
  if (!status.ok()) return status;

  const VkSpecializationMapEntry entry{0, 0, sizeof(VkBool32)};
  const std::array<VkBool32, 2> relu{VK_FALSE, VK_TRUE};
  std::array<VkSpecializationInfo, 2> constants;
  std::array<VkComputePipelineCreateInfo, 2> infos{};
  for (size_t i = 0; i < infos.size(); ++i) {
    constants[i] = {1, &entry, sizeof(VkBool32), &relu[i]};
    infos[i].sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
    infos[i].stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
    infos[i].stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
    infos[i].stage.module = module;
    infos[i].stage.pName = "main";
    infos[i].stage.pSpecializationInfo = &constants[i];
    infos[i].layout = layout_;
  }
  std::array<VkPipeline, 2> pipelines{};
  status = CheckVulkan("vkCreateComputePipelines",
                       vkCreateComputePipelines(device_, VK_NULL_HANDLE, infos.size(), infos.data(),
                                                nullptr, pipelines.data()));
  plain_ = pipelines[0];
  with_relu_ = pipelines[1];
  vkDestroyShaderModule(device_, module, nullptr);
  return status;
}

absl::Status LinearPipeline::CreatePool(uint32_t max_bindings) {
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kBufferCount * max_bindings};
  VkDescriptorPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = max_bindings;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  return CheckVulkan("vkCreateDescriptorPool",
                     vkCreateDescriptorPool(device_, &info, nullptr, &pool_));
}

absl::Status LinearPipeline::CheckRange(const char* what,
                                        const heapbroker::BufferRange& range) const {
  if (range.offset().count() % limits_.minStorageBufferOffsetAlignment != 0) {
    return absl::OutOfRangeError(
        absl::StrCat("the ", what, " begins at byte ", range.offset().count(),
                     " of its buffer, but this device needs a ", "multiple of ",
                     limits_.minStorageBufferOffsetAlignment));
  }
  if (range.size() == heapbroker::Bytes() || range.size().count() > limits_.maxStorageBufferRange) {
    return absl::OutOfRangeError(absl::StrCat("the ", what, " has ", range.size().count(),
                                              " bytes; this device can bind 1 to ",
                                              limits_.maxStorageBufferRange, " at once"));
  }
  return absl::OkStatus();
}

absl::StatusOr<VkDescriptorSet> LinearPipeline::Bind(const LinearBuffers& buffers) {
  struct Binding {
    const char* what;
    const heapbroker::BufferRange& range;
  };
  const std::array<Binding, kBufferCount> bindings{{{"weight", buffers.weight},
                                                    {"bias", buffers.bias},
                                                    {"layer's input", buffers.inputs},
                                                    {"layer's output", buffers.outputs}}};
  for (const Binding& binding : bindings) {
    absl::Status status = CheckRange(binding.what, binding.range);
    if (!status.ok()) return status;
  }
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorPool = pool_;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &set_layout_;
  VkDescriptorSet set = VK_NULL_HANDLE;
  absl::Status status =
      CheckVulkan("vkAllocateDescriptorSets", vkAllocateDescriptorSets(device_, &info, &set));
  if (!status.ok()) return status;

  std::array<VkDescriptorBufferInfo, kBufferCount> ranges{};
  std::array<VkWriteDescriptorSet, kBufferCount> writes{};
  for (uint32_t i = 0; i < kBufferCount; ++i) {
    const heapbroker::BufferRange& range = bindings[i].range;
    ranges[i] = {range.buffer().handle(), range.offset().count(), range.size().count()};
    writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes[i].dstSet = set;
    writes[i].dstBinding = i;
    writes[i].descriptorCount = 1;
    writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes[i].pBufferInfo = &ranges[i];
  }
  vkUpdateDescriptorSets(device_, kBufferCount, writes.data(), 0, nullptr);
  return set;
}

void LinearPipeline::Record(VkCommandBuffer commands, VkDescriptorSet binding,
                            const LinearShape& shape) const {
  const PushConstants push{shape.inputs, shape.outputs, shape.outputs * shape.images};
  const uint32_t wanted = push.total / kWorkgroupSize + (push.total % kWorkgroupSize != 0 ? 1 : 0);
  const uint32_t groups = std::min(wanted, limits_.maxComputeWorkGroupCount[0]);
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                    shape.activation == Activation::kRelu ? with_relu_ : plain_);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &binding, 0,
                          nullptr);
  vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push), &push);
  vkCmdDispatch(commands, groups, 1, 1);
}

}  // namespace digits
