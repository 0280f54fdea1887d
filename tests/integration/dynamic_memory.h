// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Ranges of a DeviceAllocator in the client program, and the cache below it.
#ifndef TESTS_INTEGRATION_DYNAMIC_MEMORY_H_
#define TESTS_INTEGRATION_DYNAMIC_MEMORY_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "heapbroker/device_allocator.h"

namespace heapbroker {

// Not thread-safe.
class DynamicMemory {
 public:
  // Both must outlive it.
  static absl::StatusOr<std::unique_ptr<DynamicMemory>> Start(const Client& client,
                                                              VulkanImporter& importer,
                                                              absl::Duration max_idle);

  // Writes all of it and reads it again.
  absl::Status Allocate(const std::string& name, Bytes size);
  absl::Status Free(const std::string& name);
  // "leased=4194304 blocks=1 idle=0 returned=0": in use, idle in the cache, given back
  // because the daemon asked; bytes.
  std::string Describe() const;

 private:
  DynamicMemory(std::shared_ptr<LocalCache> cache, std::unique_ptr<DeviceAllocator> allocator);

  std::shared_ptr<LocalCache> cache_;
  std::unique_ptr<DeviceAllocator> allocator_;
  std::map<std::string, DeviceAllocationHandle> allocations_;
};

}  // namespace heapbroker
#endif  // TESTS_INTEGRATION_DYNAMIC_MEMORY_H_
