// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The way into and out of buffers that the host cannot map.
#ifndef CLIENT_SRC_STAGING_H_
#define CLIENT_SRC_STAGING_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "heapbroker/client.h"
#include "heapbroker/lease.h"
#include "heapbroker/vulkan_importer.h"

namespace heapbroker {

// Copies through one leased block that the host can map, a piece at a time. The
// block is leased at the first copy and kept until End. Uses the importer's
// queue and waits for it. Both buffers must be acquired; the own one is.
//
// Not thread-safe.
class Staging {
 public:
  // `importer` must outlive it. `piece` is the size of the block: larger copies
  // take several rounds.
  Staging(const Client& client, VulkanImporter& importer, Bytes piece);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // The range must lie in the buffer. Errors of Client::Allocate and of
  // VulkanImporter::Import and SubmitAndWait.
  absl::Status Upload(const DeviceBuffer& target, Bytes offset, const void* data, Bytes size);

  // Hands the contents to `consume`, in order.
  absl::Status Download(const DeviceBuffer& source, Bytes offset, Bytes size,
                        absl::FunctionRef<void(const void* data, Bytes size)> consume);

  // Gives the block back; the next copy leases another one.
  absl::Status End();

 private:
  absl::Status Begin();

  Client client_;
  VulkanImporter& importer_;
  const Bytes piece_;
  Lease lease_;
  DeviceBuffer buffer_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_STAGING_H_
