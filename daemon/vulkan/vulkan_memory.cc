// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/vulkan_memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"
#include "daemon/vulkan/external_buffer.h"
#include "daemon/vulkan/result.h"

namespace heapbroker {
namespace {

class ExportedFd final : public ExportedHandle {
 public:
  explicit ExportedFd(UniqueFd fd) : fd_(std::move(fd)) {}
  int fd() const override { return fd_.get(); }

 private:
  const UniqueFd fd_;
};

absl::StatusOr<VkDeviceMemory> AllocateExportable(VkDevice device, uint32_t memory_type,
                                                  Bytes size) {
  VkExportMemoryAllocateInfo exported{};
  exported.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO;
  exported.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  VkMemoryAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocate.pNext = &exported;
  allocate.allocationSize = size.count();
  allocate.memoryTypeIndex = memory_type;
  VkDeviceMemory memory = VK_NULL_HANDLE;
  HB_RETURN_IF_ERROR(
      ResultToStatus(vkAllocateMemory(device, &allocate, nullptr, &memory), "vkAllocateMemory"));
  return memory;
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

VulkanMemory::~VulkanMemory() {
  absl::flat_hash_map<DeviceAllocationId, Live> left;
  {
    MutexLock lock(mutex_);
    left.swap(live_);
  }
  for (const auto& [id, live] : left) vkFreeMemory(device_.handle(), live.memory, nullptr);
}

absl::StatusOr<Bytes> VulkanMemory::RequiredSize(BlockClass block_class, Bytes size) {
  HB_RETURN_IF_ERROR(CheckClass(block_class));
  if (size == Bytes() || size > info().max_allocation_size) {
    return absl::ResourceExhaustedError(absl::StrCat("no buffer of ", size.count(),
                                                     " bytes can be made; allowed are 1 to ",
                                                     info().max_allocation_size.count()));
  }
  HB_ASSIGN_OR_RETURN(const ExternalBuffer buffer, ExternalBuffer::Create(device_.handle(), size));
  const Bytes required =
      std::max({Bytes(buffer.requirements().size), size, MemoryClearer::kSmallestClear});
  HB_RETURN_IF_ERROR(CheckAllocationSize(block_class, required));
  return required;
}

absl::StatusOr<DeviceAllocation> VulkanMemory::Allocate(BlockClass block_class,
                                                        Bytes allocation_size) {
  HB_RETURN_IF_ERROR(CheckClass(block_class));
  HB_RETURN_IF_ERROR(CheckAllocationSize(block_class, allocation_size));
  HB_ASSIGN_OR_RETURN(
      const VkDeviceMemory memory,
      AllocateExportable(device_.handle(), block_class.memory_type, allocation_size));
  absl::Cleanup undo = [&] { vkFreeMemory(device_.handle(), memory, nullptr); };
  if (clear_fresh_memory_) {
    HB_RETURN_IF_ERROR(
        clearer_->Clear(memory, info().memory_types[block_class.memory_type], allocation_size));
  }
  HB_ASSIGN_OR_RETURN(UniqueFd fd, device_.ExportMemory(memory));
  DeviceAllocation allocation;
  allocation.allocation_size = allocation_size;
  allocation.exported = std::make_shared<const ExportedFd>(std::move(fd));
  std::move(undo).Cancel();
  MutexLock lock(mutex_);
  allocation.id = DeviceAllocationId(++last_id_);
  live_.emplace(allocation.id, Live{memory, block_class.memory_type, allocation_size});
  return allocation;
}

absl::Status VulkanMemory::Clear(BlockClass block_class, const DeviceAllocation& allocation) {
  HB_RETURN_IF_ERROR(CheckClass(block_class));
  Live live;
  {
    MutexLock lock(mutex_);
    const auto found = live_.find(allocation.id);
    if (found == live_.end()) {
      return absl::NotFoundError(
          absl::StrCat("device allocation ", allocation.id.value(), " is not alive"));
    }
    live = found->second;
  }
  // What was allocated decides, not what the caller remembers of it.
  return clearer_->Clear(live.memory, info().memory_types[live.memory_type], live.size);
}

void VulkanMemory::Free(DeviceAllocationId id) {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  {
    MutexLock lock(mutex_);
    const auto found = live_.find(id);
    if (found == live_.end()) return;
    memory = found->second.memory;
    live_.erase(found);
  }
  vkFreeMemory(device_.handle(), memory, nullptr);
}

absl::Status VulkanMemory::CheckClass(BlockClass block_class) const {
  const std::vector<MemoryTypeInfo>& types = info().memory_types;
  if (block_class.handle_type == HandleType::kOpaqueFd && block_class.memory_type < types.size() &&
      types[block_class.memory_type].exportable.any()) {
    return absl::OkStatus();
  }
  std::vector<size_t> allowed;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i].exportable.any()) allowed.push_back(i);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "device '", info().name, "' cannot export memory type ", block_class.memory_type,
      " as an opaque descriptor; allowed are the types {", absl::StrJoin(allowed, ", "), "}"));
}

absl::Status VulkanMemory::CheckAllocationSize(BlockClass block_class, Bytes size) const {
  const uint32_t heap = info().memory_types[block_class.memory_type].heap;
  const Bytes largest = std::min(info().max_allocation_size, info().heaps[heap].size);
  if (size >= MemoryClearer::kSmallestClear && size <= largest) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("no allocation of ", size.count(), " bytes can be made in memory type ",
                   block_class.memory_type, "; allowed are ", MemoryClearer::kSmallestClear.count(),
                   " to ", largest.count()));
}

}  // namespace heapbroker
