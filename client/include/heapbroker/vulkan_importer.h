// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Brokered memory in the application's own VkDevice. The only public header
// that needs Vulkan.
#ifndef HEAPBROKER_VULKAN_IMPORTER_H_
#define HEAPBROKER_VULKAN_IMPORTER_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "heapbroker/cancellation.h"
#include "heapbroker/export.h"
#include "heapbroker/memory_block.h"
#include "heapbroker/types.h"
#include "vulkan/vulkan.h"

namespace heapbroker {

// What an application's device needs so that brokered memory can be imported:
// an instance and a device of Vulkan 1.1 or newer, made with these extensions.
// The instance needs none beyond Vulkan 1.1 today; the list is there so that
// an application that uses it keeps working when one is added.
inline constexpr uint32_t kRequiredVulkanVersion = VK_API_VERSION_1_1;
HEAPBROKER_EXPORT absl::Span<const char* const> RequiredInstanceExtensions();
HEAPBROKER_EXPORT absl::Span<const char* const> RequiredDeviceExtensions();

// And what the device needs for blocks that are dma-bufs.
HEAPBROKER_EXPORT absl::Span<const char* const> DmaBufDeviceExtensions();

// A dedicated block belongs to one buffer of this usage (and of
// VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT, where it has device addresses): the
// largest whose VkMemoryRequirements::size is the block's allocation size.
inline constexpr VkBufferUsageFlags kDedicatedBufferUsage =
    VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
    VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
    VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT;

// The application's own objects, borrowed: they must outlive the importer and
// all its buffers.
struct VulkanContext {
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  // Used by VulkanImporter::SubmitAndWait and what calls it. Nothing else may
  // use the queue at that time, as Vulkan demands for all queues.
  VkQueue queue = VK_NULL_HANDLE;
  uint32_t queue_family = 0;
  // For the copies of Transfers (transfers.h), which then leave `queue` alone as far as
  // they can: another queue, of this or of another family. Null: they use `queue`.
  VkQueue transfer_queue = VK_NULL_HANDLE;
  uint32_t transfer_queue_family = 0;
  // Memory allocations that the application makes itself, at most: they count
  // towards the device's maxMemoryAllocationCount as imports do.
  uint32_t other_allocations = 0;
  // The device was made with all of DmaBufDeviceExtensions(). Vulkan does not tell,
  // so blocks that are dma-bufs are refused where it is not said.
  bool dma_bufs = false;
  // The device was made with the feature bufferDeviceAddress: likewise for blocks
  // that have device addresses.
  bool device_addresses = false;
};

// An imported block as a VkBuffer that covers it: the memory's offset 0 is the
// buffer's. Of a dedicated block all are one buffer, of kDedicatedBufferUsage and
// perhaps longer than size(). Copies share one buffer, which ends with the last of
// them; the device's work on it must have completed by then, and the Lease or
// Segment must outlive every use of the contents.
//
// Thread-safe, except that recording needs the command buffer to be free. In a forked
// child mapped() stays valid and the contents are shared; nothing else may be used, and
// the end of a copy frees nothing, since that would free the parent's.
class HEAPBROKER_EXPORT DeviceBuffer {
 public:
  DeviceBuffer() = default;  // Empty.

  bool valid() const { return state_ != nullptr; }
  VkBuffer handle() const;
  VkDeviceMemory memory() const;
  Bytes size() const;  // ImportFacts::size.
  // As they are here: of a dma-buf the memory type and the allocation size are the
  // importing device's, not the broker's.
  const ImportFacts& facts() const;

  // The whole buffer in host memory; null where the memory is not host-visible.
  // Mapped once, with the import.
  void* mapped() const;

  // What shaders take for a pointer to the first byte. Only of a buffer that was
  // made with VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT.
  std::optional<uint64_t> device_address() const;

  // For memory that is not host-coherent; both do nothing where it is. Flush
  // after the host wrote and before the device reads or the block is released
  // or sealed; Invalidate after the device (or another process) wrote, the work
  // completed, and before the host reads.
  //   OUT_OF_RANGE         beyond the buffer
  //   FAILED_PRECONDITION  not host-visible
  absl::Status Flush(Bytes offset, Bytes size) const;
  absl::Status Invalidate(Bytes offset, Bytes size) const;

  // Shared memory has an owner among the queue families. Acquire takes the
  // buffer from VK_QUEUE_FAMILY_EXTERNAL (VK_QUEUE_FAMILY_FOREIGN_EXT for dma-bufs,
  // which other drivers may use) before this device's first use; Release
  // gives it back after the last one: before a Lease is released and before a
  // Segment is sealed, with a fence wait in between. Acquired and not released
  // at most once at a time. See VulkanImporter::AcquireAll. `queue_family` is the one
  // that the commands are for; unset: the context's.
  void RecordAcquire(VkCommandBuffer commands, std::optional<uint32_t> queue_family = {}) const;
  void RecordRelease(VkCommandBuffer commands, std::optional<uint32_t> queue_family = {}) const;

 private:
  friend class VulkanImporter;
  struct HEAPBROKER_LOCAL State;

  // What a flush must cover; empty where the memory needs none.
  absl::StatusOr<std::optional<VkMappedMemoryRange>> SyncRange(Bytes offset, Bytes size) const;

  std::shared_ptr<const State> state_;
};

struct ImporterStats {
  uint32_t imports = 0;             // Alive now.
  uint32_t max_imports = 0;         // The importer's own limit.
  uint64_t failed_imports = 0;      // Since the importer was made.
  uint64_t leaked_descriptors = 0;  // Left open because a driver may own them.
};

// Imports blocks into one device. A block is imported once, however often it is
// asked for, while any DeviceBuffer of it is left; the imports of the whole
// process are made one at a time. Use one importer for each device in a process.
//
// Thread-safe. A forked child gets FAILED_PRECONDITION from every call, since drivers do
// not survive fork() either; it may drop the importer.
class HEAPBROKER_EXPORT VulkanImporter {
 public:
  struct HEAPBROKER_LOCAL State;  // The library's own.

  //   INVALID_ARGUMENT     a handle is missing, a queue family does not exist, or one
  //                        queue is said to be of two families
  //   FAILED_PRECONDITION  Vulkan below 1.1, or a device without RequiredDeviceExtensions()
  static absl::StatusOr<std::unique_ptr<VulkanImporter>> Create(const VulkanContext& context);
  ~VulkanImporter();
  VulkanImporter(const VulkanImporter&) = delete;
  VulkanImporter& operator=(const VulkanImporter&) = delete;

  // The block as a buffer of `usage`, of facts().size bytes. Everything that the
  // facts say is checked before the driver sees the descriptor. A dma-buf may come
  // from another device and driver; its memory type is chosen here.
  //   FAILED_PRECONDITION  another device or driver than the broker's (the message
  //                        names both), a memory type that differs or cannot hold
  //                        such a buffer, a descriptor that is not what the handle
  //                        type says, a usage that the block or the context was not
  //                        made for
  //   RESOURCE_EXHAUSTED   the device's number of allocations, this process's
  //                        descriptors, or memory in the driver
  //   INTERNAL             the driver refused; the message has its error
  //   DEADLINE_EXCEEDED, CANCELLED  as `call` says, unset: the block's call_timeout(),
  //                        while others' imports went first; the driver is not
  //                        interrupted once it has begun
  //   or an error of MemoryBlock::fd()
  absl::StatusOr<DeviceBuffer> Import(const MemoryBlock& block, VkBufferUsageFlags usage,
                                      const CallOptions& call = {});

  // Records, submits to the context's queue and waits until the device is done.
  absl::Status SubmitAndWait(absl::FunctionRef<void(VkCommandBuffer)> record);

  // SubmitAndWait with RecordAcquire or RecordRelease of each.
  absl::Status AcquireAll(absl::Span<const DeviceBuffer> buffers);
  absl::Status ReleaseAll(absl::Span<const DeviceBuffer> buffers);

  const VulkanContext& context() const;
  ImporterStats stats() const;

 private:
  friend class Transfers;

  explicit VulkanImporter(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

// An instance, device and compute queue for programs that have none, and a queue for
// transfers where the device has another one. Made for dma-bufs and device addresses
// where the device has them: see context(). Immutable, and with that thread-safe.
class HEAPBROKER_EXPORT MinimalDevice {
 public:
  // On the physical device whose device and driver UUIDs are `device`'s, which
  // is the one that the broker's memory can be imported on.
  //   NOT_FOUND    this process sees no such device; the message lists what it sees
  //   UNAVAILABLE  no Vulkan driver could be used
  static absl::StatusOr<std::unique_ptr<MinimalDevice>> Create(const BrokerDevice& device);
  // All importers and buffers on it must be gone. Does nothing in a forked child.
  ~MinimalDevice();
  MinimalDevice(const MinimalDevice&) = delete;
  MinimalDevice& operator=(const MinimalDevice&) = delete;

  const VulkanContext& context() const { return context_; }

 private:
  MinimalDevice() = default;
  VulkanContext context_;
  uint64_t forks_ = 0;  // How often this process had been forked off another one.
};

}  // namespace heapbroker
#endif  // HEAPBROKER_VULKAN_IMPORTER_H_
