// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One transfer between the host and a range of a buffer, through staging buffers.
#ifndef CLIENT_SRC_STAGED_COPY_H_
#define CLIENT_SRC_STAGED_COPY_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/src/hand_over.h"
#include "client/src/staging_ring.h"
#include "client/src/transfer_course.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// The first copy takes the range for the queue and the last one gives it back; what is
// left undone by an error is done before it is returned. Nothing is on its way then.
//
// For one transfer. Not thread-safe.
class StagedCopy {
 public:
  // The ring is prepared; all must outlive it. The range lies in the buffer.
  StagedCopy(StagingRing& ring, HandOver& hand_over, const DeviceBuffer& buffer, Bytes offset,
             TransferCourse& course)
      : ring_(ring), hand_over_(hand_over), buffer_(buffer), offset_(offset), course_(course) {}

  absl::Status Upload(ProducePiece produce);
  absl::Status Download(ConsumePiece consume);

 private:
  enum class Direction { kToDevice, kToHost };

  absl::Status UploadPieces(ProducePiece produce);
  absl::Status DownloadPieces(ConsumePiece consume);
  // `copy` in between what the range's owner has to do before and after it.
  absl::Status WithRange(absl::FunctionRef<absl::Status()> copy);
  absl::Status Submit(uint64_t piece, Direction direction);

  StagingRing& ring_;
  HandOver& hand_over_;
  const DeviceBuffer& buffer_;
  const Bytes offset_;
  TransferCourse& course_;
  bool taken_ = false;
  bool given_ = false;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_STAGED_COPY_H_
