// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/allocated_bytes.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> allocated{0};

void* Counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  allocated.fetch_add(malloc_usable_size(memory), std::memory_order_relaxed);
  return memory;
}

void Free(void* memory) {
  if (memory == nullptr) return;
  allocated.fetch_sub(malloc_usable_size(memory), std::memory_order_relaxed);
  std::free(memory);
}

void* Aligned(std::size_t size, std::align_val_t alignment) {
  const auto bytes = static_cast<std::size_t>(alignment);
  return Counted(std::aligned_alloc(bytes, (size + bytes - 1) / bytes * bytes));
}

}  // namespace

void* operator new(std::size_t size) { return Counted(std::malloc(size == 0 ? 1 : size)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Aligned(size, alignment);
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { Free(memory); }

namespace heapbroker {

size_t AllocatedBytes() { return allocated.load(std::memory_order_relaxed); }

}  // namespace heapbroker
