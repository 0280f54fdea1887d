// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A double of ExecuTorch's headers, as of 2026: what heapbroker/executorch.h and its
// test use of them, and no more. Planned memory is spans, and nothing is left in the
// old namespace.
#ifndef TESTS_FAKES_EXECUTORCH_TODAY_EXECUTORCH_RUNTIME_EXECUTOR_MEMORY_MANAGER_H_
#define TESTS_FAKES_EXECUTORCH_TODAY_EXECUTORCH_RUNTIME_EXECUTOR_MEMORY_MANAGER_H_

#include <cstddef>
#include <cstdint>

#include "executorch/runtime/core/span.h"

namespace executorch::runtime {

enum class Error : uint32_t { Ok = 0, InvalidArgument = 0x12, MemoryAllocationFailed = 0x21 };

// A value, or why there is none.
template <typename T>
class Result {
 public:
  Result(T value) : value_(value) {}      // NOLINT: ExecuTorch's converts, too.
  Result(Error error) : error_(error) {}  // NOLINT

  bool ok() const { return error_ == Error::Ok; }
  Error error() const { return error_; }
  T get() const { return value_; }

 private:
  T value_{};
  Error error_ = Error::Ok;
};

// What a user of ExecuTorch sees of it; hands nothing out by itself.
class MemoryAllocator {
 public:
  static constexpr size_t kDefaultAlignment = alignof(void*);

  MemoryAllocator(uint32_t size, uint8_t* base_address) : base_(base_address), size_(size) {}
  virtual ~MemoryAllocator() = default;

  virtual void* allocate(size_t, size_t = kDefaultAlignment) { return nullptr; }
  template <typename T>
  T* allocateInstance(size_t alignment = alignof(T)) {
    return static_cast<T*>(allocate(sizeof(T), alignment));
  }
  template <typename T>
  T* allocateList(size_t count, size_t alignment = alignof(T)) {
    return static_cast<T*>(allocate(count * sizeof(T), alignment));
  }
  virtual uint8_t* base_address() const { return base_; }
  virtual uint32_t size() const { return size_; }
  virtual size_t used_size() const { return 0; }
  virtual size_t free_size() const { return size_; }
  virtual void reset() {}

 private:
  uint8_t* const base_;
  const uint32_t size_;
};

// Planned memory: one span for each memory id.
class HierarchicalAllocator final {
 public:
  explicit HierarchicalAllocator(Span<Span<uint8_t>> buffers) : buffers_(buffers) {}

  Result<void*> get_offset_address(uint32_t memory_id, size_t offset, size_t size) {
    if (memory_id >= buffers_.size() || offset > SIZE_MAX - size) return Error::InvalidArgument;
    const Span<uint8_t> buffer = buffers_[memory_id];
    if (offset + size > buffer.size()) return Error::MemoryAllocationFailed;
    return static_cast<void*>(buffer.data() + offset);
  }

 private:
  const Span<Span<uint8_t>> buffers_;
};

class MemoryManager final {
 public:
  explicit MemoryManager(MemoryAllocator* method, HierarchicalAllocator* planned = nullptr,
                         MemoryAllocator* temporary = nullptr)
      : method_(method), planned_(planned), temporary_(temporary) {}

  MemoryAllocator* method_allocator() const { return method_; }
  HierarchicalAllocator* planned_memory() const { return planned_; }
  MemoryAllocator* temp_allocator() const { return temporary_; }

 private:
  MemoryAllocator* method_;
  HierarchicalAllocator* planned_;
  MemoryAllocator* temporary_;
};

}  // namespace executorch::runtime

#endif  // TESTS_FAKES_EXECUTORCH_TODAY_EXECUTORCH_RUNTIME_EXECUTOR_MEMORY_MANAGER_H_
