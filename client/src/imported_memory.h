// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the importer and its buffers share.
#ifndef CLIENT_SRC_IMPORTED_MEMORY_H_
#define CLIENT_SRC_IMPORTED_MEMORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "client/src/copy_commands.h"
#include "client/src/descriptor_import.h"
#include "client/src/import_buffer.h"
#include "client/src/import_slots.h"
#include "client/src/importing_device.h"
#include "client/transport/process_mark.h"
#include "client/transport/turn.h"
#include "common/base/mutex.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

class ImportedMemory;

// A block's identity in this process: ids repeat between daemons.
using BlockKey = std::pair<uint64_t, uint64_t>;  // Connection number, block id.

// Imports that are alive, so that no block is imported twice. Thread-safe.
class ImportCache {
 public:
  std::shared_ptr<const ImportedMemory> Find(BlockKey key) const;
  void Insert(BlockKey key, const std::shared_ptr<const ImportedMemory>& memory);
  // Called by an import that ends: drops the entry unless it is a newer one.
  void Forget(BlockKey key);

 private:
  mutable Mutex mutex_;
  std::map<BlockKey, std::weak_ptr<const ImportedMemory>> entries_ ABSL_GUARDED_BY(mutex_);
};

struct VulkanImporter::State {
  // Where Transfers copy.
  CopyQueue CopyingQueue() {
    if (context.transfer_queue == VK_NULL_HANDLE) {
      return {context.device, context.queue, context.queue_family, &submitting};
    }
    Turn& turn = context.transfer_queue == context.queue ? submitting : transferring;
    return {context.device, context.transfer_queue, context.transfer_queue_family, &turn};
  }

  State(const VulkanContext& vulkan_context, const ImportingDevice& snapshot, uint32_t max_imports)
      : context(vulkan_context), device(snapshot), slots(max_imports), descriptors(comparer) {}

  const ProcessMark process;
  const VulkanContext context;
  const ImportingDevice device;
  ImportSlots slots;
  ImportCache cache;
  Turn importing;     // From looking into the cache to adding to it.
  Turn submitting;    // Our own uses of the queue.
  Turn transferring;  // And of the one for transfers, where that is another.
  KcmpComparer comparer;
  DescriptorImporter descriptors;
};

// One VkDeviceMemory that was imported, its mapping, and the buffer that it is
// dedicated to, if it is. Immutable; freed with the last buffer that lies in it, but not
// by a forked child: the kernel's objects behind it are the parent's as well, and what
// one of the two frees is gone for both.
class ImportedMemory {
 public:
  // Takes ownership of `memory` and of a slot of `slots`. `facts` are those that it
  // was imported with.
  ImportedMemory(VkDevice device, VkDeviceMemory memory, void* mapped, BlockKey key,
                 const ImportFacts& facts, std::optional<ImportBuffer> dedicated_buffer,
                 std::shared_ptr<void> keep_alive, ImportSlots& slots, ImportCache& cache)
      : device_(device),
        memory_(memory),
        mapped_(mapped),
        key_(key),
        facts_(facts),
        dedicated_buffer_(std::move(dedicated_buffer)),
        keep_alive_(std::move(keep_alive)),
        slots_(slots),
        cache_(cache) {}
  ~ImportedMemory();
  ImportedMemory(const ImportedMemory&) = delete;
  ImportedMemory& operator=(const ImportedMemory&) = delete;

  VkDeviceMemory handle() const { return memory_; }
  void* mapped() const { return mapped_; }
  const ImportFacts& facts() const { return facts_; }
  // Null unless dedicated: then the only buffer that the memory may have.
  const ImportBuffer* dedicated_buffer() const {
    return dedicated_buffer_ ? &*dedicated_buffer_ : nullptr;
  }

 private:
  const ProcessMark process_;
  const VkDevice device_;
  const VkDeviceMemory memory_;
  void* const mapped_;
  const BlockKey key_;
  const ImportFacts facts_;
  std::optional<ImportBuffer> dedicated_buffer_;
  const std::shared_ptr<void> keep_alive_;  // Whatever owns the next two.
  ImportSlots& slots_;
  ImportCache& cache_;
};

struct DeviceBuffer::State {
  const ImportBuffer& buffer() const {
    return own_buffer ? *own_buffer : *memory->dedicated_buffer();
  }
  // Who else may own the memory.
  uint32_t others_queue_family() const {
    return facts.handle_type == HandleType::kDmaBuf ? VK_QUEUE_FAMILY_FOREIGN_EXT
                                                    : VK_QUEUE_FAMILY_EXTERNAL;
  }

  VulkanContext context;
  ImportFacts facts;
  Bytes non_coherent_atom;
  std::shared_ptr<const ImportedMemory> memory;
  // Goes before the memory. Empty where the memory is dedicated.
  std::optional<ImportBuffer> own_buffer;
  std::optional<uint64_t> device_address;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_IMPORTED_MEMORY_H_
