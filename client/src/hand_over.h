// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A buffer's way to the queue that copies, and back.
#ifndef CLIENT_SRC_HAND_OVER_H_
#define CLIENT_SRC_HAND_OVER_H_

#include "absl/status/status.h"
#include "client/src/copy_commands.h"
#include "heapbroker/transfers.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// Which barriers make a range of a buffer the copying queue's and then its owner's
// again:
//
//   owner           before, its queue   first command    last command     after, its queue
//   same family     -                   memory barrier   memory barrier   -
//   other family    release             acquire          release          acquire
//   nobody here     -                   RecordAcquire    RecordRelease    -
//
// Each queue is waited for before the next one goes on, which is the dependency that
// barriers of two queues need between them. Not thread-safe.
class HandOver {
 public:
  using Owner = TransferOptions::Owner;

  // All must outlive it.
  HandOver(VulkanImporter& importer, const CopyQueue& queue, const DeviceBuffer& buffer,
           Bytes offset, Bytes size, Owner owner)
      : importer_(importer),
        queue_(queue),
        buffer_(buffer),
        offset_(offset),
        size_(size),
        owner_(owner) {}

  // The owner's part, by VulkanImporter::SubmitAndWait where there is any.
  absl::Status Before();
  absl::Status After();
  // On the queue that copies.
  void RecordTake(VkCommandBuffer commands) const;
  void RecordGive(VkCommandBuffer commands) const;

 private:
  uint32_t owners_family() const { return importer_.context().queue_family; }
  bool changes_family() const {
    return owner_ == Owner::kQueueFamily && owners_family() != queue_.family;
  }
  VkBufferMemoryBarrier Barrier(uint32_t from, uint32_t to) const;

  VulkanImporter& importer_;
  const CopyQueue& queue_;
  const DeviceBuffer& buffer_;
  const Bytes offset_;
  const Bytes size_;
  const Owner owner_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_HAND_OVER_H_
