// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/examples/digits/classifier.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "heapbroker/units.h"

namespace digits {
namespace {

using heapbroker::BufferRange;
using heapbroker::Bytes;

// More would only take memory: this many fill any device.
constexpr uint64_t kMaxBatch = 4096;
constexpr Bytes kAlignment(Model::kAlignment);

Bytes FloatBytes(uint64_t images, uint64_t width) { return Bytes(images * width * sizeof(float)); }

// Everything written by `from` is done and visible to `to`.
struct Access {
  VkPipelineStageFlags stage;
  VkAccessFlags access;
};
constexpr Access kCopyWrite{VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT};
constexpr Access kCopyRead{VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT};
constexpr Access kShaderWrite{VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT};
constexpr Access kShaderRead{VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT};
constexpr Access kHostRead{VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT};

void RecordBarrier(VkCommandBuffer commands, Access from, Access to) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = from.access;
  barrier.dstAccessMask = to.access;
  vkCmdPipelineBarrier(commands, from.stage, to.stage, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

void RecordCopy(VkCommandBuffer commands, const BufferRange& from, const BufferRange& to,
                Bytes size) {
  const VkBufferCopy region{from.offset().count(), to.offset().count(), size.count()};
  vkCmdCopyBuffer(commands, from.buffer().handle(), to.buffer().handle(), 1, &region);
}

}  // namespace

uint32_t ChooseBatch(const Model& model, uint32_t image_count,
                     const VkPhysicalDeviceLimits& limits) {
  uint64_t widest = model.inputs();
  for (const Layer& layer : model.layers()) widest = std::max<uint64_t>(widest, layer.outputs);
  const uint64_t bindable = limits.maxStorageBufferRange / (widest * sizeof(float));
  return static_cast<uint32_t>(
      std::max<uint64_t>(1, std::min({bindable, kMaxBatch, uint64_t{image_count}})));
}

heapbroker::MemoryPlan PlanMemory(const Model& model, uint32_t batch) {
  heapbroker::MemoryPlan plan;
  plan.constant.size = Bytes(model.weights_size());
  plan.non_constant.push_back({.size = FloatBytes(batch, model.inputs()), .name = "images"});
  for (const Layer& layer : model.layers()) {
    plan.non_constant.push_back({.size = FloatBytes(batch, layer.outputs)});
  }
  // The scores begin at an aligned address after the images.
  plan.kernel_temporary = {
      .size = FloatBytes(batch, model.inputs()) + kAlignment + FloatBytes(batch, model.outputs()),
      .memory = heapbroker::MemoryKind::kHostVisible};
  return plan;
}

absl::StatusOr<std::unique_ptr<Classifier>> Classifier::Create(const Resources& resources) {
  std::unique_ptr<Classifier> classifier(new Classifier(resources));
  if (absl::Status status = classifier->BindMemory(); !status.ok()) return status;
  for (uint32_t number = 1; number <= resources.model.layers().size(); ++number) {
    if (absl::Status status = classifier->BindLayer(number); !status.ok()) return status;
  }
  return classifier;
}

absl::Status Classifier::BindMemory() {
  const auto& [model, importer, memory, pipeline, batch] = resources_;
  const Bytes inputs_size = FloatBytes(batch, model.inputs());
  const Bytes scores_size = FloatBytes(batch, model.outputs());
  heapbroker::ArenaAllocator& arena = *memory.get_kernel_temporary_allocator();
  const heapbroker::HierarchicalAllocator& planned = *memory.get_non_constant_allocator();
  const auto last = static_cast<uint32_t>(model.layers().size());

  struct Wanted {
    BufferRange& range;
    absl::StatusOr<BufferRange> got;
  };
  Wanted all[] = {{upload_, arena.Allocate(inputs_size, kAlignment)},
                  {download_, arena.Allocate(scores_size, kAlignment)},
                  {inputs_, planned.get_offset_address(0, Bytes(0), inputs_size)},
                  {scores_, planned.get_offset_address(last, Bytes(0), scores_size)}};
  for (Wanted& wanted : all) {
    if (!wanted.got.ok()) return wanted.got.status();
    wanted.range = *wanted.got;
  }
  return absl::OkStatus();
}

absl::Status Classifier::BindLayer(uint32_t number) {
  const auto& [model, importer, memory, pipeline, batch] = resources_;
  const Layer& layer = model.layers()[number - 1];
  const heapbroker::ConstantAllocator& weights = *memory.get_constant_allocator();
  const heapbroker::HierarchicalAllocator& planned = *memory.get_non_constant_allocator();

  const absl::StatusOr<BufferRange> weight =
      weights.get_offset_address(Bytes(layer.weight.offset), Bytes(layer.weight.size));
  if (!weight.ok()) return weight.status();
  const absl::StatusOr<BufferRange> bias =
      weights.get_offset_address(Bytes(layer.bias.offset), Bytes(layer.bias.size));
  if (!bias.ok()) return bias.status();
  const absl::StatusOr<BufferRange> inputs =
      planned.get_offset_address(number - 1, Bytes(0), FloatBytes(batch, layer.inputs));
  if (!inputs.ok()) return inputs.status();
  const absl::StatusOr<BufferRange> outputs =
      planned.get_offset_address(number, Bytes(0), FloatBytes(batch, layer.outputs));
  if (!outputs.ok()) return outputs.status();

  const absl::StatusOr<VkDescriptorSet> binding =
      pipeline.Bind({.weight = *weight, .bias = *bias, .inputs = *inputs, .outputs = *outputs});
  if (!binding.ok()) return binding.status();
  bindings_.push_back(*binding);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> Classifier::Classify(absl::Span<const uint8_t> pixels) {
  const size_t batch_pixels = size_t{resources_.batch} * resources_.model.inputs();
  std::vector<uint32_t> answers;
  for (size_t done = 0; done < pixels.size(); done += batch_pixels) {
    absl::Status status = RunBatch(pixels.subspan(done, batch_pixels), answers);
    if (!status.ok()) return status;
  }
  return answers;
}

absl::Status Classifier::RunBatch(absl::Span<const uint8_t> pixels,
                                  std::vector<uint32_t>& answers) {
  const uint32_t width = resources_.model.outputs();
  const auto images = static_cast<uint32_t>(pixels.size() / resources_.model.inputs());

  const absl::StatusOr<void*> input = upload_.host();
  if (!input.ok()) return input.status();
  const absl::StatusOr<void*> scores = download_.host();
  if (!scores.ok()) return scores.status();

  auto* next = static_cast<float*>(*input);
  for (const uint8_t pixel : pixels) *next++ = static_cast<float>(pixel) / 255.0f;
  absl::Status status = upload_.Part(Bytes(0), Bytes(pixels.size() * sizeof(float))).Flush();
  if (!status.ok()) return status;

  status = resources_.importer.SubmitAndWait(
      [&](VkCommandBuffer commands) { Record(commands, images); });
  if (!status.ok()) return status;

  status = download_.Part(Bytes(0), FloatBytes(images, width)).Invalidate();
  if (!status.ok()) return status;
  for (uint32_t image = 0; image < images; ++image) {
    const float* first = static_cast<const float*>(*scores) + size_t{image} * width;
    answers.push_back(static_cast<uint32_t>(std::max_element(first, first + width) - first));
  }
  return absl::OkStatus();
}

void Classifier::Record(VkCommandBuffer commands, uint32_t images) const {
  const std::vector<Layer>& layers = resources_.model.layers();
  RecordCopy(commands, upload_, inputs_, FloatBytes(images, resources_.model.inputs()));
  RecordBarrier(commands, kCopyWrite, kShaderRead);
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool last = i + 1 == layers.size();
    resources_.pipeline.Record(commands, bindings_[i],
                               {.inputs = layers[i].inputs,
                                .outputs = layers[i].outputs,
                                .images = images,
                                .activation = last ? Activation::kNone : Activation::kRelu});
    RecordBarrier(commands, kShaderWrite, last ? kCopyRead : kShaderRead);
  }
  RecordCopy(commands, scores_, download_, FloatBytes(images, resources_.model.outputs()));
  RecordBarrier(commands, kCopyWrite, kHostRead);
}

}  // namespace digits
