// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/integration/dynamic_memory.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {

DynamicMemory::DynamicMemory(std::shared_ptr<LocalCache> cache,
                             std::unique_ptr<DeviceAllocator> allocator)
    : cache_(std::move(cache)), allocator_(std::move(allocator)) {}

absl::StatusOr<std::unique_ptr<DynamicMemory>> DynamicMemory::Start(const Client& client,
                                                                    VulkanImporter& importer,
                                                                    absl::Duration max_idle) {
  HB_ASSIGN_OR_RETURN(std::shared_ptr<LocalCache> cache,
                      LocalCache::Start(client, importer, {.max_idle = max_idle}));
  HB_ASSIGN_OR_RETURN(std::unique_ptr<DeviceAllocator> allocator,
                      DeviceAllocator::Create(cache, {.memory = MemoryKind::kHostVisible,
                                                      .max_wait = absl::ZeroDuration()}));
  return std::unique_ptr<DynamicMemory>(new DynamicMemory(std::move(cache), std::move(allocator)));
}

absl::Status DynamicMemory::Allocate(const std::string& name, Bytes size) {
  HB_ASSIGN_OR_RETURN(const DeviceAllocation allocation, allocator_->Allocate(size));
  allocations_[name] = allocation.handle;
  HB_ASSIGN_OR_RETURN(void* const host, allocation.range.host());
  std::memset(host, 0x5a, size.count());
  if (static_cast<char*>(host)[size.count() - 1] == 0x5a) return absl::OkStatus();
  return absl::DataLossError("what was written is not there");
}

absl::Status DynamicMemory::Free(const std::string& name) {
  const auto found = allocations_.find(name);
  if (found == allocations_.end()) return absl::InvalidArgumentError(absl::StrCat("no ", name));
  HB_RETURN_IF_ERROR(allocator_->Free(found->second));
  allocations_.erase(found);
  return absl::OkStatus();
}

std::string DynamicMemory::Describe() const {
  const DeviceAllocatorStats stats = allocator_->stats();
  const LocalCacheStats cached = cache_->stats();
  return absl::StrCat("leased=", stats.leased.count(), " blocks=", stats.blocks,
                      " idle=", cached.idle.count(),
                      " returned=", cached.given_back_on_request.count());
}

}  // namespace heapbroker
