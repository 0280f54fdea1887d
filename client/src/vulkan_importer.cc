// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/vulkan_importer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/src/import_checks.h"
#include "client/src/imported_memory.h"
#include "client/src/one_shot.h"
#include "client/src/vulkan_result.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

constexpr VkExternalMemoryHandleTypeFlagBits kHandleType =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
constexpr const char* kDeviceExtensions[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};

absl::Status CheckContext(const VulkanContext& context) {
  if (context.instance == VK_NULL_HANDLE || context.physical_device == VK_NULL_HANDLE ||
      context.device == VK_NULL_HANDLE || context.queue == VK_NULL_HANDLE) {
    return absl::InvalidArgumentError(
        "VulkanContext needs instance, physical_device, device and queue");
  }
  uint32_t families = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(context.physical_device, &families, nullptr);
  if (context.queue_family >= families) {
    return absl::InvalidArgumentError(absl::StrCat("VulkanContext.queue_family is ",
                                                   context.queue_family, " and the device has ",
                                                   families, " families"));
  }
  return absl::OkStatus();
}

absl::Status CheckCapabilities(const VulkanContext& context, const ImportingDevice& snapshot) {
  if (snapshot.api_version < kRequiredVulkanVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        snapshot.name, " has Vulkan ", VK_API_VERSION_MAJOR(snapshot.api_version), ".",
        VK_API_VERSION_MINOR(snapshot.api_version), " and 1.1 is needed; update its driver"));
  }
  if (vkGetDeviceProcAddr(context.device, "vkGetMemoryFdKHR") == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the device was made without ", VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                     "; pass all of RequiredDeviceExtensions() to vkCreateDevice"));
  }
  return absl::OkStatus();
}

absl::Status CheckImportable(const VulkanContext& context, VkBufferUsageFlags usage) {
  if (usage == 0) return absl::InvalidArgumentError("usage must name at least one use");
  const VkPhysicalDeviceExternalBufferInfo info{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
      .usage = usage,
      .handleType = kHandleType};
  VkExternalBufferProperties properties{.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
  vkGetPhysicalDeviceExternalBufferProperties(context.physical_device, &info, &properties);
  if ((properties.externalMemoryProperties.externalMemoryFeatures &
       VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this device cannot import opaque descriptors for buffer usage 0x", absl::Hex(usage)));
  }
  return absl::OkStatus();
}

absl::StatusOr<VkBuffer> CreateBuffer(const VulkanContext& context, const ImportFacts& facts,
                                      VkBufferUsageFlags usage) {
  const VkExternalMemoryBufferCreateInfo external{
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = kHandleType};
  const VkBufferCreateInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                .pNext = &external,
                                .size = facts.size.count(),
                                .usage = usage,
                                .sharingMode = VK_SHARING_MODE_EXCLUSIVE};
  VkBuffer buffer = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      VulkanStatus(vkCreateBuffer(context.device, &info, nullptr, &buffer), "vkCreateBuffer"));
  return buffer;
}

absl::StatusOr<VkDeviceMemory> ImportMemory(VulkanImporter::State& state, const ImportFacts& facts,
                                            int fd) {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(state.descriptors.Import(fd, [&](int duplicate) {
    const VkImportMemoryFdInfoKHR import{.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                         .handleType = kHandleType,
                                         .fd = duplicate};
    const VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                    .pNext = &import,
                                    .allocationSize = facts.allocation_size.count(),
                                    .memoryTypeIndex = facts.memory_type_index};
    return VulkanStatus(vkAllocateMemory(state.context.device, &info, nullptr, &memory),
                        absl::StrCat("import of block ", facts.block_id, ": vkAllocateMemory"));
  }));
  return memory;
}

// By whoever has the importing turn.
absl::StatusOr<std::shared_ptr<const ImportedMemory>> FindOrImport(
    const std::shared_ptr<VulkanImporter::State>& state, const MemoryBlock& block, int fd) {
  const ImportFacts& facts = block.facts();
  const BlockKey key(block.connection_number(), facts.block_id);
  if (std::shared_ptr<const ImportedMemory> found = state->cache.Find(key)) return found;
  HB_RETURN_IF_ERROR(state->slots.Take());
  absl::StatusOr<VkDeviceMemory> memory = ImportMemory(*state, facts, fd);
  if (!memory.ok()) {
    state->slots.Give();
    return std::move(memory).status();
  }
  void* mapped = nullptr;
  absl::Status mapping;
  if ((facts.memory_property_flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0) {
    mapping = VulkanStatus(
        vkMapMemory(state->context.device, *memory, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
  }
  auto imported = std::make_shared<const ImportedMemory>(state->context.device, *memory, mapped,
                                                         key, state, state->slots, state->cache);
  HB_RETURN_IF_ERROR(mapping);
  state->cache.Insert(key, imported);
  return imported;
}

}  // namespace

absl::Span<const char* const> RequiredInstanceExtensions() { return {}; }

absl::Span<const char* const> RequiredDeviceExtensions() { return kDeviceExtensions; }

VulkanImporter::VulkanImporter(std::shared_ptr<State> state) : state_(std::move(state)) {}
VulkanImporter::~VulkanImporter() = default;

absl::StatusOr<std::unique_ptr<VulkanImporter>> VulkanImporter::Create(
    const VulkanContext& context) {
  HB_RETURN_IF_ERROR(CheckContext(context));
  const ImportingDevice snapshot = ReadImportingDevice(context.physical_device);
  HB_RETURN_IF_ERROR(CheckCapabilities(context, snapshot));
  const uint32_t max_imports = MaxImports(snapshot.max_allocation_count, context.other_allocations);
  return std::unique_ptr<VulkanImporter>(
      new VulkanImporter(std::make_shared<State>(context, snapshot, max_imports)));
}

absl::StatusOr<DeviceBuffer> VulkanImporter::Import(const MemoryBlock& block,
                                                    VkBufferUsageFlags usage) {
  const ImportFacts& facts = block.facts();
  HB_RETURN_IF_ERROR(CheckDevice(block.device(), state_->device));
  HB_RETURN_IF_ERROR(CheckMemoryType(facts, state_->device.memory));
  HB_RETURN_IF_ERROR(CheckImportable(state_->context, usage));
  HB_ASSIGN_OR_RETURN(const int fd, block.fd());
  HB_RETURN_IF_ERROR(CheckDescriptor(facts, fd));

  const auto buffer = std::make_shared<DeviceBuffer::State>();
  buffer->context = state_->context;
  buffer->facts = facts;
  buffer->non_coherent_atom = state_->device.non_coherent_atom;
  HB_ASSIGN_OR_RETURN(buffer->buffer, CreateBuffer(state_->context, facts, usage));
  VkMemoryRequirements requirements{};
  vkGetBufferMemoryRequirements(state_->context.device, buffer->buffer, &requirements);
  HB_RETURN_IF_ERROR(CheckRequirements(facts, requirements));
  {
    TurnHolder turn(state_->importing);
    HB_ASSIGN_OR_RETURN(buffer->memory, FindOrImport(state_, block, fd));
  }
  HB_RETURN_IF_ERROR(VulkanStatus(
      vkBindBufferMemory(state_->context.device, buffer->buffer, buffer->memory->handle(), 0),
      "vkBindBufferMemory"));
  DeviceBuffer result;
  result.state_ = buffer;
  return result;
}

absl::Status VulkanImporter::SubmitAndWait(absl::FunctionRef<void(VkCommandBuffer)> record) {
  TurnHolder turn(state_->submitting);
  return RunOnce(state_->context, record);
}

absl::Status VulkanImporter::AcquireAll(absl::Span<const DeviceBuffer> buffers) {
  if (buffers.empty()) return absl::OkStatus();
  return SubmitAndWait([&](VkCommandBuffer commands) {
    for (const DeviceBuffer& buffer : buffers) buffer.RecordAcquire(commands);
  });
}

absl::Status VulkanImporter::ReleaseAll(absl::Span<const DeviceBuffer> buffers) {
  if (buffers.empty()) return absl::OkStatus();
  return SubmitAndWait([&](VkCommandBuffer commands) {
    for (const DeviceBuffer& buffer : buffers) buffer.RecordRelease(commands);
  });
}

const VulkanContext& VulkanImporter::context() const { return state_->context; }

ImporterStats VulkanImporter::stats() const {
  return {.imports = state_->slots.taken(),
          .max_imports = state_->slots.limit(),
          .failed_imports = state_->descriptors.failed(),
          .leaked_descriptors = state_->descriptors.leaked()};
}

}  // namespace heapbroker
