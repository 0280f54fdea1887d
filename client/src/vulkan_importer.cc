// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/vulkan_importer.h"

#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/src/import_buffer.h"
#include "client/src/import_checks.h"
#include "client/src/imported_memory.h"
#include "client/src/one_shot.h"
#include "client/src/vulkan_result.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

constexpr const char* kDeviceExtensions[] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
constexpr const char* kDmaBufDeviceExtensions[] = {VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME,
                                                   VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME};

absl::Status CheckContext(const VulkanContext& context) {
  if (context.instance == VK_NULL_HANDLE || context.physical_device == VK_NULL_HANDLE ||
      context.device == VK_NULL_HANDLE || context.queue == VK_NULL_HANDLE) {
    return absl::InvalidArgumentError(
        "VulkanContext needs instance, physical_device, device and queue");
  }
  uint32_t families = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(context.physical_device, &families, nullptr);
  const auto check = [&](absl::string_view field, uint32_t family) {
    if (family < families) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("VulkanContext.", field, " is ", family,
                                                   " and the device has ", families, " families"));
  };
  HB_RETURN_IF_ERROR(check("queue_family", context.queue_family));
  if (context.transfer_queue == VK_NULL_HANDLE) return absl::OkStatus();
  HB_RETURN_IF_ERROR(check("transfer_queue_family", context.transfer_queue_family));
  if (context.transfer_queue != context.queue ||
      context.transfer_queue_family == context.queue_family) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("VulkanContext.transfer_queue is its queue, of family ", context.queue_family,
                   ", and transfer_queue_family is ", context.transfer_queue_family));
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

// What the device says of importing buffers of this kind.
absl::StatusOr<VkExternalMemoryFeatureFlags> ReadImportFeatures(const VulkanContext& context,
                                                                HandleType type,
                                                                VkBufferUsageFlags usage) {
  const VkPhysicalDeviceExternalBufferInfo info{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
      .usage = usage,
      .handleType = ToVulkan(type)};
  VkExternalBufferProperties properties{.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
  vkGetPhysicalDeviceExternalBufferProperties(context.physical_device, &info, &properties);
  const VkExternalMemoryFeatureFlags features =
      properties.externalMemoryProperties.externalMemoryFeatures;
  if ((features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("this device cannot import ",
                     type == HandleType::kDmaBuf ? "dma-bufs" : "opaque descriptors",
                     " for buffer usage 0x", absl::Hex(usage)));
  }
  return features;
}

absl::StatusOr<uint32_t> TypesOfDmaBuf(VkDevice device, int fd) {
  const auto get_properties = reinterpret_cast<PFN_vkGetMemoryFdPropertiesKHR>(
      vkGetDeviceProcAddr(device, "vkGetMemoryFdPropertiesKHR"));
  VkMemoryFdPropertiesKHR properties{.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
  HB_RETURN_IF_ERROR(
      VulkanStatus(get_properties(device, ToVulkan(HandleType::kDmaBuf), fd, &properties),
                   "vkGetMemoryFdPropertiesKHR"));
  return properties.memoryTypeBits;
}

// The facts of a dma-buf as this device is to import it, under `buffer`.
absl::StatusOr<ImportFacts> FactsOfDmaBuf(const VulkanImporter::State& state,
                                          const MemoryBlock& block, const ImportFacts& facts,
                                          const ImportBuffer& buffer, int fd) {
  HB_ASSIGN_OR_RETURN(const uint32_t types, TypesOfDmaBuf(state.context.device, fd));
  const bool same_device = CheckDevice(block.device(), state.device).ok();
  ImportFacts here = facts;
  HB_ASSIGN_OR_RETURN(here.memory_type_index,
                      ChooseDmaBufType(facts, same_device, types,
                                       buffer.requirements().memoryTypeBits, state.device.memory));
  here.memory_property_flags =
      state.device.memory.memoryTypes[here.memory_type_index].propertyFlags;
  // Dedicated memory has its buffer's size; CheckDescriptor has seen that there is
  // at least the broker's.
  const off_t size = lseek(fd, 0, SEEK_END);
  if (!here.dedicated && size > 0) here.allocation_size = Bytes(static_cast<uint64_t>(size));
  return here;
}

absl::StatusOr<VkDeviceMemory> ImportMemory(VulkanImporter::State& state, const ImportFacts& facts,
                                            const std::optional<ImportBuffer>& dedicated_buffer,
                                            int fd, const CallLimits& limits) {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(state.descriptors.Import(fd, limits, [&](int duplicate) {
    const VkImportMemoryFdInfoKHR import{.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                         .handleType = ToVulkan(facts.handle_type),
                                         .fd = duplicate};
    VkMemoryAllocateInfo info{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                              .pNext = &import,
                              .allocationSize = facts.allocation_size.count(),
                              .memoryTypeIndex = facts.memory_type_index};
    VkMemoryDedicatedAllocateInfo dedicated{.sType =
                                                VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
    if (dedicated_buffer) {
      dedicated.buffer = dedicated_buffer->handle();
      dedicated.pNext = std::exchange(info.pNext, &dedicated);
    }
    VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                    .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    if (facts.device_address) flags.pNext = std::exchange(info.pNext, &flags);
    return VulkanStatus(vkAllocateMemory(state.context.device, &info, nullptr, &memory),
                        absl::StrCat("import of block ", facts.block_id, ": vkAllocateMemory"));
  }));
  return memory;
}

absl::Status MapAndBind(const VulkanImporter::State& state, const ImportFacts& facts,
                        const std::optional<ImportBuffer>& dedicated_buffer, VkDeviceMemory memory,
                        void** mapped) {
  if (dedicated_buffer) {
    HB_RETURN_IF_ERROR(VulkanStatus(
        vkBindBufferMemory(state.context.device, dedicated_buffer->handle(), memory, 0),
        "vkBindBufferMemory"));
  }
  if ((facts.memory_property_flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) {
    return absl::OkStatus();
  }
  return VulkanStatus(vkMapMemory(state.context.device, memory, 0, VK_WHOLE_SIZE, 0, mapped),
                      "vkMapMemory");
}

// With the facts that this device needs.
absl::StatusOr<std::shared_ptr<const ImportedMemory>> ImportNow(
    const std::shared_ptr<VulkanImporter::State>& state, BlockKey key, const ImportFacts& facts,
    std::optional<ImportBuffer> dedicated_buffer, int fd, const CallLimits& limits) {
  HB_RETURN_IF_ERROR(state->slots.Take());
  absl::StatusOr<VkDeviceMemory> memory = ImportMemory(*state, facts, dedicated_buffer, fd, limits);
  if (!memory.ok()) {
    state->slots.Give();
    return std::move(memory).status();
  }
  void* mapped = nullptr;
  const absl::Status ready = MapAndBind(*state, facts, dedicated_buffer, *memory, &mapped);
  auto imported = std::make_shared<const ImportedMemory>(state->context.device, *memory, mapped,
                                                         key, facts, std::move(dedicated_buffer),
                                                         state, state->slots, state->cache);
  HB_RETURN_IF_ERROR(ready);
  state->cache.Insert(key, imported);
  return imported;
}

// By whoever has the importing turn. `own_buffer` is the one that is to lie in the
// memory; without one the memory is to be dedicated to a buffer of its own.
absl::StatusOr<std::shared_ptr<const ImportedMemory>> FindOrImport(
    const std::shared_ptr<VulkanImporter::State>& state, const MemoryBlock& block,
    const ImportFacts& facts, const std::optional<ImportBuffer>& own_buffer, int fd,
    const CallLimits& limits) {
  const BlockKey key(block.connection_number(), facts.block_id);
  if (std::shared_ptr<const ImportedMemory> found = state->cache.Find(key)) return found;
  std::optional<ImportBuffer> dedicated_buffer;
  if (!own_buffer) {
    HB_ASSIGN_OR_RETURN(dedicated_buffer,
                        ImportBuffer::CreateDedicated(state->context.device, facts));
  }
  const ImportBuffer& buffer = own_buffer ? *own_buffer : *dedicated_buffer;
  ImportFacts here = facts;
  if (facts.handle_type == HandleType::kDmaBuf) {
    HB_ASSIGN_OR_RETURN(here, FactsOfDmaBuf(*state, block, facts, buffer, fd));
  }
  HB_RETURN_IF_ERROR(CheckRequirements(here, buffer.requirements()));
  return ImportNow(state, key, here, std::move(dedicated_buffer), fd, limits);
}

// The facts that the import goes by, after all that can be checked without the
// descriptor.
absl::StatusOr<ImportFacts> CheckFacts(const VulkanImporter::State& state, const MemoryBlock& block,
                                       VkBufferUsageFlags usage) {
  ImportFacts facts = block.facts();
  HB_RETURN_IF_ERROR(CheckUsage(facts, usage, state.context));
  HB_ASSIGN_OR_RETURN(const VkExternalMemoryFeatureFlags features,
                      ReadImportFeatures(state.context, facts.handle_type, usage));
  if (facts.handle_type == HandleType::kOpaqueFd) {
    HB_RETURN_IF_ERROR(CheckDevice(block.device(), state.device));
    HB_RETURN_IF_ERROR(CheckMemoryType(facts, state.device.memory));
    return facts;
  }
  // What the exporter needed for itself binds no importer of a dma-buf.
  facts.dedicated = (features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT) != 0;
  facts.device_address = facts.device_address && state.context.device_addresses;
  if (facts.dedicated) HB_RETURN_IF_ERROR(CheckDedicatedUsage(facts, usage));
  return facts;
}

}  // namespace

absl::Span<const char* const> RequiredInstanceExtensions() { return {}; }

absl::Span<const char* const> RequiredDeviceExtensions() { return kDeviceExtensions; }

absl::Span<const char* const> DmaBufDeviceExtensions() { return kDmaBufDeviceExtensions; }

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
                                                    VkBufferUsageFlags usage,
                                                    const CallOptions& call) {
  HB_RETURN_IF_ERROR(state_->process.Check());
  const CallLimits limits(call, block.call_timeout());
  HB_ASSIGN_OR_RETURN(const ImportFacts facts, CheckFacts(*state_, block, usage));
  HB_ASSIGN_OR_RETURN(const int fd, block.fd(call));
  HB_RETURN_IF_ERROR(CheckDescriptor(facts, fd));

  const auto buffer = std::make_shared<DeviceBuffer::State>();
  buffer->context = state_->context;
  buffer->non_coherent_atom = state_->device.non_coherent_atom;
  if (!facts.dedicated) {
    HB_ASSIGN_OR_RETURN(
        buffer->own_buffer,
        ImportBuffer::Create(state_->context.device, facts.handle_type, facts.size, usage));
  }
  {
    TurnHolder turn(state_->importing, limits, "another import into this device did not end");
    HB_RETURN_IF_ERROR(turn.status());
    HB_ASSIGN_OR_RETURN(buffer->memory,
                        FindOrImport(state_, block, facts, buffer->own_buffer, fd, limits));
  }
  buffer->facts = buffer->memory->facts();
  if (buffer->own_buffer) {
    // What was found may have been imported for a buffer of another usage.
    HB_RETURN_IF_ERROR(CheckRequirements(buffer->facts, buffer->own_buffer->requirements()));
    HB_RETURN_IF_ERROR(
        VulkanStatus(vkBindBufferMemory(state_->context.device, buffer->own_buffer->handle(),
                                        buffer->memory->handle(), 0),
                     "vkBindBufferMemory"));
  }
  if (!buffer->own_buffer) usage = DedicatedUsage(buffer->facts);
  if ((usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) != 0) {
    buffer->device_address = buffer->buffer().DeviceAddress();
  }
  DeviceBuffer result;
  result.state_ = buffer;
  return result;
}

absl::Status VulkanImporter::SubmitAndWait(absl::FunctionRef<void(VkCommandBuffer)> record) {
  HB_RETURN_IF_ERROR(state_->process.Check());
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
  if (state_->process.forked()) return {};
  return {.imports = state_->slots.taken(),
          .max_imports = state_->slots.limit(),
          .failed_imports = state_->descriptors.failed(),
          .leaked_descriptors = state_->descriptors.leaked()};
}

}  // namespace heapbroker
