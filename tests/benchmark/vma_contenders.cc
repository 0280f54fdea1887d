// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/vma_contenders.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "tests/benchmark/suballocators.h"
#include "vk_mem_alloc.h"

namespace heapbroker {
namespace {

class MeasuredVirtualBlock {
 public:
  using Handle = VmaVirtualAllocation;

  explicit MeasuredVirtualBlock(VmaVirtualAllocationCreateFlags strategy) : strategy_(strategy) {
    VmaVirtualBlockCreateInfo info{};
    info.size = kVirtualSize.count();
    vmaCreateVirtualBlock(&info, &block_);
  }
  ~MeasuredVirtualBlock() {
    vmaClearVirtualBlock(block_);
    vmaDestroyVirtualBlock(block_);
  }
  MeasuredVirtualBlock(const MeasuredVirtualBlock&) = delete;
  MeasuredVirtualBlock& operator=(const MeasuredVirtualBlock&) = delete;

  std::optional<Placed<Handle>> Allocate(uint64_t size, uint64_t alignment) {
    VmaVirtualAllocationCreateInfo info{};
    info.size = size;
    info.alignment = alignment;
    info.flags = strategy_;
    Handle handle = VK_NULL_HANDLE;
    VkDeviceSize offset = 0;
    if (vmaVirtualAllocate(block_, &info, &handle, &offset) != VK_SUCCESS) return std::nullopt;
    return Placed<Handle>{handle, offset + size};
  }
  void Free(Handle handle) { vmaVirtualFree(block_, handle); }
  Bytes held() const { return Bytes(0); }

 private:
  const VmaVirtualAllocationCreateFlags strategy_;
  VmaVirtualBlock block_ = VK_NULL_HANDLE;
};

// Thread-safe by itself.
class MeasuredMemory {
 public:
  using Handle = VmaAllocation;

  explicit MeasuredMemory(const VulkanContext& context) {
    VmaDeviceMemoryCallbacks callbacks{};
    callbacks.pfnAllocate = OnAllocate;
    callbacks.pfnFree = OnFree;
    callbacks.pUserData = this;
    VmaAllocatorCreateInfo info{};
    info.instance = context.instance;
    info.physicalDevice = context.physical_device;
    info.device = context.device;
    info.vulkanApiVersion = kRequiredVulkanVersion;
    info.pDeviceMemoryCallbacks = &callbacks;
    vmaCreateAllocator(&info, &allocator_);
  }
  ~MeasuredMemory() { vmaDestroyAllocator(allocator_); }
  MeasuredMemory(const MeasuredMemory&) = delete;
  MeasuredMemory& operator=(const MeasuredMemory&) = delete;

  std::optional<Placed<Handle>> Allocate(uint64_t size, uint64_t alignment) {
    // The first memory type, which is the only one of the devices that this runs on.
    VkMemoryRequirements requirements{};
    requirements.size = size;
    requirements.alignment = alignment;
    requirements.memoryTypeBits = 1;
    VmaAllocationCreateInfo info{};
    info.memoryTypeBits = 1;
    Handle handle = VK_NULL_HANDLE;
    if (vmaAllocateMemory(allocator_, &requirements, &info, &handle, nullptr) != VK_SUCCESS) {
      return std::nullopt;
    }
    return Placed<Handle>{handle};
  }
  void Free(Handle handle) { vmaFreeMemory(allocator_, handle); }
  Bytes held() const { return most_; }

 private:
  static void VKAPI_PTR OnAllocate(VmaAllocator, uint32_t, VkDeviceMemory, VkDeviceSize size,
                                   void* self) {
    auto* const memory = static_cast<MeasuredMemory*>(self);
    const std::lock_guard<std::mutex> lock(memory->mutex_);
    memory->held_ += Bytes(size);
    memory->most_ = std::max(memory->most_, memory->held_);
  }
  static void VKAPI_PTR OnFree(VmaAllocator, uint32_t, VkDeviceMemory, VkDeviceSize size,
                               void* self) {
    auto* const memory = static_cast<MeasuredMemory*>(self);
    const std::lock_guard<std::mutex> lock(memory->mutex_);
    memory->held_ -= Bytes(size);
  }

  VmaAllocator allocator_ = VK_NULL_HANDLE;
  std::mutex mutex_;  // Guards both.
  Bytes held_;
  Bytes most_;
};

Contender VirtualBlock(std::string name, VmaVirtualAllocationCreateFlags strategy) {
  return MakeContender(
      std::move(name),
      [strategy](const AllocationTrace&) {
        return std::make_unique<MeasuredVirtualBlock>(strategy);
      },
      [strategy](const AllocationTrace&) {
        return std::make_unique<Locked<MeasuredVirtualBlock>>(strategy);
      });
}

}  // namespace

std::vector<Contender> VmaContenders(const VulkanContext& context) {
  const auto memory = [&context](const AllocationTrace&) {
    return std::make_unique<MeasuredMemory>(context);
  };
  return {
      VirtualBlock("VMA virtual block", 0),
      VirtualBlock("the same, least memory", VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT),
      MakeContender("VMA memory", memory, memory)};
}

}  // namespace heapbroker
