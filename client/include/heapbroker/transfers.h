// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The way into and out of buffers that the host cannot map, or should not read.
#ifndef HEAPBROKER_TRANSFERS_H_
#define HEAPBROKER_TRANSFERS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "heapbroker/cancellation.h"
#include "heapbroker/client.h"
#include "heapbroker/export.h"
#include "heapbroker/types.h"

namespace heapbroker {

class DeviceBuffer;
class VulkanImporter;

struct TransfersOptions {
  // Of one staging buffer: what is larger goes in several pieces. More than zero.
  Bytes piece = MiB(8);
  // Pieces that are on their way at the same time, each in a staging buffer of its
  // own. From 1 to 64. Fewer where there is no memory for more.
  uint32_t in_flight = 3;
  // Where staging buffers are leased; that of the importer's device. Into
  // Client::devices().
  uint32_t device_index = 0;
};

struct TransferProgress {
  Bytes done{};
  Bytes total{};
};

// Of one transfer.
struct TransferOptions {
  // Who owns the buffer before and after, also after an error.
  enum class Owner {
    // The context's queue family: it was acquired. Where copies are made by a queue of
    // another family, it is handed over and back, which uses the context's queue.
    kQueueFamily,
    // Nobody on this device: it was not acquired, or released. The queue that copies
    // acquires and releases it, and the context's queue is not used.
    kExternal,
  };
  Owner owner = Owner::kQueueFamily;
  // Called on the calling thread after each piece, the last included.
  std::function<void(const TransferProgress&)> on_progress{};
  // Ends the transfer after the pieces that are on their way.
  std::shared_ptr<Cancellation> cancellation{};
  // Likewise. A transfer takes as long as its bytes do, so there is no limit unless one
  // is given; leasing the staging buffers, which is part of it, has the usual one besides.
  absl::Duration timeout = absl::InfiniteDuration();
};

// Copies through staging buffers, host-visible ones for uploads and cached ones for
// downloads, by VulkanContext::transfer_queue or else by its queue. Where the host can
// map the buffer, and read it fast, it copies by itself; before a download the context's
// queue then shows it what the device wrote.
//
// The device's work on the range must have completed before, and must not begin until
// the call has returned; the buffer must be fit for such copies
// (VK_BUFFER_USAGE_TRANSFER_DST_BIT, VK_BUFFER_USAGE_TRANSFER_SRC_BIT). Afterwards what
// was written is visible to all work that is submitted to the queue family that owns
// the buffer. After an error an upload's range holds anything.
//
// Staging buffers are leased when they are needed and kept until ReleaseStaging or the
// end. They outlive a lost session as all imported memory does, and are leased anew in
// the next one.
//
// One thread at a time; several of them may be used at once. No other use of the queue
// at the same time, as for VulkanImporter::SubmitAndWait. In a forked child every call is
// FAILED_PRECONDITION; it may be dropped.
class HEAPBROKER_EXPORT Transfers {
 public:
  // `importer` must outlive it.
  //   INVALID_ARGUMENT  an option is out of range; the message names it
  static absl::StatusOr<std::unique_ptr<Transfers>> Create(const Client& client,
                                                           VulkanImporter& importer,
                                                           const TransfersOptions& options = {});
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // Host memory into bytes [offset, offset + size) of the buffer.
  //   OUT_OF_RANGE                  past its end
  //   DEADLINE_EXCEEDED, CANCELLED  as `options` say
  //   or an error of Client::Allocate, VulkanImporter::Import or the driver
  absl::Status Upload(const DeviceBuffer& target, Bytes offset, const void* data, Bytes size,
                      const TransferOptions& options = {});

  // The same from wherever `produce` takes it: it fills each piece, in order, as a file is
  // read. Its error ends the transfer and is returned.
  absl::Status UploadFrom(const DeviceBuffer& target, Bytes offset, Bytes size,
                          absl::FunctionRef<absl::Status(void* piece, Bytes size)> produce,
                          const TransferOptions& options = {});

  // Bytes of the buffer into host memory. Errors of Upload.
  absl::Status Download(const DeviceBuffer& source, Bytes offset, void* data, Bytes size,
                        const TransferOptions& options = {});

  // The same to wherever `consume` brings it, piece after piece, in order. Its error ends
  // the transfer and is returned.
  absl::Status DownloadTo(const DeviceBuffer& source, Bytes offset, Bytes size,
                          absl::FunctionRef<absl::Status(const void* piece, Bytes size)> consume,
                          const TransferOptions& options = {});

  // Gives the staging buffers back. Returns the first error; they are given up in any
  // case, and go as by Lease::ReleaseLater where `call` ends before. Waits for the device
  // as long as that takes.
  absl::Status ReleaseStaging(const CallOptions& call = {});

 private:
  struct HEAPBROKER_LOCAL State;
  explicit Transfers(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_TRANSFERS_H_
