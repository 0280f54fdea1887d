// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One block of brokered memory and its descriptor, whoever holds it.
#ifndef HEAPBROKER_MEMORY_BLOCK_H_
#define HEAPBROKER_MEMORY_BLOCK_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "heapbroker/cancellation.h"
#include "heapbroker/export.h"
#include "heapbroker/types.h"

namespace heapbroker {

class Connection;

// A block that this process may import: a Lease has one, a Segment has one or
// more. Both the facts and the descriptor are good for any interface that takes
// an opaque Vulkan descriptor (CUDA, HIP, Level Zero, OpenCL), not only for
// VulkanImporter.
//
// Thread-safe. Whoever keeps a MemoryBlock keeps the descriptor open, but not
// the right to use the memory: that ends with the Lease or the Segment.
class HEAPBROKER_EXPORT MemoryBlock {
 public:
  // For Client, which makes all blocks.
  MemoryBlock(std::shared_ptr<Connection> connection, const ImportFacts& facts);
  ~MemoryBlock();
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  const ImportFacts& facts() const;

  // The broker's device that the block lies on.
  const BrokerDevice& device() const;

  // Tells the sessions of this process apart, whichever daemon they were with:
  // block ids are unique within one of these only.
  uint64_t connection_number() const;

  // ClientOptions::call_timeout of its session.
  absl::Duration call_timeout() const;

  // The block's descriptor, close-on-exec and borrowed: it stays open until this
  // object ends. An import that takes ownership must be given a duplicate. The
  // first call asks the daemon for it; later calls answer at once, whatever became of
  // the session.
  //   RESOURCE_EXHAUSTED   this process has no free descriptor; a later call can succeed
  //   NOT_FOUND            the lease was released, or the segment closed
  //   DEADLINE_EXCEEDED    the daemon did not answer in time; a later call can succeed
  //   CANCELLED            by `call.cancellation`; a later call can succeed
  //   UNAVAILABLE          the session has ended
  //   FAILED_PRECONDITION  this process was forked off the one that connected
  absl::StatusOr<int> fd(const CallOptions& call = {}) const;

  // Asks for the descriptors of all `blocks` that have none yet, in as few messages as
  // the daemon answers them in: sooner than one by one where a model has many blocks.
  // Then `fd` of each answers at once. The blocks may be of several sessions. Errors of
  // `fd`, the first that is met; descriptors that came before it are kept.
  static absl::Status FetchAll(absl::Span<const MemoryBlock* const> blocks,
                               const CallOptions& call = {});

 private:
  struct HEAPBROKER_LOCAL State;
  std::unique_ptr<State> state_;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_MEMORY_BLOCK_H_
