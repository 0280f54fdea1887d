// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/imported_memory.h"

namespace heapbroker {

std::shared_ptr<const ImportedMemory> ImportCache::Find(BlockKey key) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : found->second.lock();
}

void ImportCache::Insert(BlockKey key, const std::shared_ptr<const ImportedMemory>& memory) {
  MutexLock lock(mutex_);
  entries_[key] = memory;
}

void ImportCache::Forget(BlockKey key) {
  MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  if (found != entries_.end() && found->second.expired()) entries_.erase(found);
}

ImportedMemory::~ImportedMemory() {
  if (process_.forked()) return;
  dedicated_buffer_.reset();
  // Freeing unmaps.
  vkFreeMemory(device_, memory_, nullptr);
  slots_.Give();
  cache_.Forget(key_);
}

}  // namespace heapbroker
