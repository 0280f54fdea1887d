// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/vulkan_memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"
#include "daemon/core/memory_type_choice.h"
#include "daemon/vulkan/external_buffer.h"
#include "daemon/vulkan/handle_type.h"

namespace heapbroker {
namespace {

class ExportedFd final : public ExportedHandle {
 public:
  explicit ExportedFd(UniqueFd fd) : fd_(std::move(fd)) {}
  int fd() const override { return fd_.get(); }

 private:
  const UniqueFd fd_;
};

// The memory types that blocks like `block_class` can have.
std::vector<size_t> TypesLike(const DeviceInfo& info, const BlockClass& block_class) {
  std::vector<size_t> types;
  for (size_t i = 0; i < info.memory_types.size(); ++i) {
    if (info.memory_types[i].exportable.has(block_class.handle_type)) types.push_back(i);
  }
  return types;
}

}  // namespace

absl::StatusOr<std::unique_ptr<VulkanMemory>> VulkanMemory::Create(
    const VulkanDevice& device, const VulkanMemoryOptions& options) {
  HB_ASSIGN_OR_RETURN(std::unique_ptr<MemoryClearer> clearer,
                      MemoryClearer::Create(device, options.clear_path));
  // Not make_unique: the constructor is private.
  return std::unique_ptr<VulkanMemory>(new VulkanMemory(device, options, std::move(clearer)));
}

VulkanMemory::VulkanMemory(const VulkanDevice& device, const VulkanMemoryOptions& options,
                           std::unique_ptr<MemoryClearer> clearer)
    : device_(device),
      clear_fresh_memory_(options.clear_mode == ClearMode::kAlways ||
                          !device.fresh_memory_is_zero()),
      clearer_(std::move(clearer)) {}

VulkanMemory::~VulkanMemory() = default;

absl::StatusOr<Bytes> VulkanMemory::RequiredSize(BlockClass block_class, Bytes size) {
  HB_RETURN_IF_ERROR(CheckClass(block_class));
  if (size == Bytes() || size > info().max_allocation_size) {
    return absl::OutOfRangeError(absl::StrCat("no buffer of ", size.count(),
                                              " bytes can be made; allowed are 1 to ",
                                              info().max_allocation_size.count()));
  }
  HB_ASSIGN_OR_RETURN(const ExternalBuffer buffer,
                      ExternalBuffer::Create(device_.handle(), BufferKindOf(block_class), size));
  if ((buffer.requirements().memoryTypeBits >> block_class.memory_type & 1) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", info().name, "' has no buffers ",
                     block_class.device_address ? "with device addresses " : "", "in memory type ",
                     block_class.memory_type, "; possible are the types of the mask 0x",
                     absl::Hex(buffer.requirements().memoryTypeBits)));
  }
  const Bytes required =
      std::max({Bytes(buffer.requirements().size), size, MemoryClearer::kSmallestClear});
  HB_RETURN_IF_ERROR(CheckAllocationSize(block_class, required));
  return required;
}

absl::StatusOr<DeviceAllocation> VulkanMemory::Allocate(BlockClass block_class,
                                                        Bytes allocation_size) {
  HB_RETURN_IF_ERROR(CheckClass(block_class));
  HB_RETURN_IF_ERROR(CheckAllocationSize(block_class, allocation_size));
  HB_ASSIGN_OR_RETURN(ExportableMemory memory,
                      ExportableMemory::Allocate(device_, block_class, allocation_size));
  if (clear_fresh_memory_) HB_RETURN_IF_ERROR(clearer_->Clear(memory));
  HB_ASSIGN_OR_RETURN(UniqueFd fd, memory.Export());
  DeviceAllocation allocation;
  allocation.allocation_size = allocation_size;
  allocation.exported = std::make_shared<const ExportedFd>(std::move(fd));
  auto live = std::make_unique<ExportableMemory>(std::move(memory));
  MutexLock lock(mutex_);
  allocation.id = DeviceAllocationId(++last_id_);
  live_.emplace(allocation.id, std::move(live));
  return allocation;
}

absl::Status VulkanMemory::Clear(BlockClass block_class, const DeviceAllocation& allocation) {
  HB_RETURN_IF_ERROR(CheckClass(block_class));
  const ExportableMemory* memory = nullptr;
  {
    MutexLock lock(mutex_);
    const auto found = live_.find(allocation.id);
    if (found == live_.end()) {
      return absl::NotFoundError(
          absl::StrCat("device allocation ", allocation.id.value(), " is not alive"));
    }
    memory = found->second.get();
  }
  // Nobody frees what is being cleared. What was allocated decides, not what the
  // caller remembers of it.
  return clearer_->Clear(*memory);
}

std::vector<HeapReport> VulkanMemory::ReadHeaps() {
  if (!device_.has_memory_budget()) return {};
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  properties.pNext = &budget;
  vkGetPhysicalDeviceMemoryProperties2(device_.physical_device(), &properties);
  std::vector<HeapReport> reports;
  for (size_t i = 0; i < info().heaps.size(); ++i) {
    reports.push_back({Bytes(budget.heapBudget[i]), Bytes(budget.heapUsage[i])});
  }
  return reports;
}

void VulkanMemory::Free(DeviceAllocationId id) {
  std::unique_ptr<ExportableMemory> memory;  // Freed when the lock is gone.
  MutexLock lock(mutex_);
  const auto found = live_.find(id);
  if (found == live_.end()) return;
  memory = std::move(found->second);
  live_.erase(found);
}

absl::Status VulkanMemory::CheckClass(const BlockClass& block_class) const {
  const std::vector<MemoryTypeInfo>& types = info().memory_types;
  const absl::string_view handle_type = HandleTypeName(block_class.handle_type);
  if (block_class.memory_type >= types.size() ||
      !types[block_class.memory_type].exportable.has(block_class.handle_type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", info().name, "' cannot export memory type ",
                     block_class.memory_type, " as ", handle_type, "; allowed are the types {",
                     absl::StrJoin(TypesLike(info(), block_class), ", "), "}"));
  }
  if (info().dedicated_only.has(block_class.handle_type) && !block_class.dedicated) {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", info().name, "' exports only dedicated memory as ", handle_type));
  }
  if (block_class.device_address && !info().device_addresses) {
    return absl::InvalidArgumentError(
        absl::StrCat("device '", info().name, "' has no device addresses"));
  }
  return absl::OkStatus();
}

absl::Status VulkanMemory::CheckAllocationSize(BlockClass block_class, Bytes size) const {
  const uint32_t heap = info().memory_types[block_class.memory_type].heap;
  const Bytes largest = std::min(info().max_allocation_size, info().heaps[heap].size);
  if (size >= MemoryClearer::kSmallestClear && size <= largest) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("no allocation of ", size.count(), " bytes can be made in memory type ",
                   block_class.memory_type, "; allowed are ", MemoryClearer::kSmallestClear.count(),
                   " to ", largest.count()));
}

}  // namespace heapbroker
