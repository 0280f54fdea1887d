// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Named contents that every process of a tenant shares.
#ifndef HEAPBROKER_SEGMENT_H_
#define HEAPBROKER_SEGMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "heapbroker/cancellation.h"
#include "heapbroker/export.h"
#include "heapbroker/memory_block.h"
#include "heapbroker/types.h"

namespace heapbroker {

class Connection;

// An attachment to a segment. The writer fills it, seals it and stays attached;
// the others find it sealed. After sealing nobody may write: nothing can
// enforce that, the checksum can only show that somebody did.
//
// Move-only; not thread-safe, but its MemoryBlocks are. May outlive its Client.
class HEAPBROKER_EXPORT Segment {
 public:
  // What the daemon said.
  struct Attachment {
    uint64_t id = 0;
    std::string name{};
    bool writer = false;
    Bytes size{};
    std::vector<std::shared_ptr<const MemoryBlock>> blocks{};
    std::optional<Checksum> checksum{};
    uint32_t device_index = 0;
  };

  // Attached to nothing, as after a move or Close.
  Segment() = default;
  // For Client.
  Segment(std::shared_ptr<Connection> connection, Attachment attachment);
  // Detaches: waits at most the call timeout, and after an error goes on as CloseLater;
  // does nothing in a forked child. A writer that ends without sealing abandons the
  // contents, and the next process that waits becomes writer, on fresh blocks.
  ~Segment();
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;

  // False after a move or Close.
  bool attached() const { return connection_ != nullptr; }

  // Attached, but its session was found to have ended: the daemon does not know of it
  // any more. What was imported stays valid.
  bool lost() const;

  // This process must fill the segment and seal it. False once sealed.
  bool is_writer() const { return attachment_.writer; }

  uint64_t id() const { return attachment_.id; }
  const std::string& name() const { return attachment_.name; }
  Bytes size() const { return attachment_.size; }

  // One after the other they hold the segment: each one's facts().size is its
  // part. More than one only where the size passes the device's largest block.
  const std::vector<std::shared_ptr<const MemoryBlock>>& blocks() const {
    return attachment_.blocks;
  }

  // What the writer said when it sealed. Nothing has verified it.
  const std::optional<Checksum>& checksum() const { return attachment_.checksum; }

  // Says that the contents are complete: all who wait are attached. The writes
  // must have completed, and blocks that the device wrote or will read must have
  // been released to VK_QUEUE_FAMILY_EXTERNAL (DeviceBuffer::RecordRelease).
  //   FAILED_PRECONDITION  this process is not the writer, or it is sealed
  //   NOT_FOUND            not attached any more
  //   UNAVAILABLE          the session has ended
  //   DEADLINE_EXCEEDED    the daemon did not answer in time; whether it is sealed, a
  //                        repetition tells: it is if that is FAILED_PRECONDITION
  //   CANCELLED            by `call.cancellation`; the same
  //   RESOURCE_EXHAUSTED   this process has no free descriptor to reach the daemon
  absl::Status Seal(Checksum checksum, const CallOptions& call = {});

  // Detaches now. OK when not attached. As Lease::Release, an error other than
  // NOT_FOUND and UNAVAILABLE leaves it attached, and after UNAVAILABLE it goes as by
  // CloseLater. After DEADLINE_EXCEEDED and CANCELLED the daemon may have closed it: where
  // this session has another Segment of the same name, close that one by CloseLater,
  // which knows of the other.
  absl::Status Close(const CallOptions& call = {});

  // Detaches without waiting for the daemon: on a thread of the library, which tries
  // again for as long as the session lasts. Nothing is attached then, except in a forked
  // child, where this does nothing.
  void CloseLater();

 private:
  // Nothing is attached any more, and there is nothing to close.
  void Forget();
  void GiveUp();

  std::shared_ptr<Connection> connection_;
  Attachment attachment_;
  // A call that ended without an answer may have done so.
  bool may_be_sealed_ = false;
  bool may_be_closed_ = false;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_SEGMENT_H_
