// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A double of ExecuTorch's headers, as of July 2023: what heapbroker/executorch.h and
// its test use of them, and no more. Planned memory is an array of allocators.
#ifndef TESTS_FAKES_EXECUTORCH_2023_EXECUTORCH_RUNTIME_EXECUTOR_MEMORY_MANAGER_H_
#define TESTS_FAKES_EXECUTORCH_2023_EXECUTORCH_RUNTIME_EXECUTOR_MEMORY_MANAGER_H_

#include <cstddef>
#include <cstdint>

namespace torch::executor {

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
  virtual void reset() {}

 private:
  uint8_t* const base_;
  const uint32_t size_;
};

// Planned memory: one allocator for each memory id.
class HierarchicalAllocator {
 public:
  HierarchicalAllocator(uint32_t count, MemoryAllocator* allocators)
      : count_(count), allocators_(allocators) {}
  virtual ~HierarchicalAllocator() = default;

  Result<void*> get_offset_address(uint32_t memory_id, size_t offset, size_t size) {
    if (memory_id >= count_) return Error::InvalidArgument;
    const MemoryAllocator& memory = allocators_[memory_id];
    if (offset + size > memory.size()) return Error::MemoryAllocationFailed;
    return static_cast<void*>(memory.base_address() + offset);
  }

 private:
  const uint32_t count_;
  MemoryAllocator* const allocators_;
};

class MemoryManager {
 public:
  MemoryManager(MemoryAllocator* constant, HierarchicalAllocator* non_constant,
                MemoryAllocator* runtime, MemoryAllocator* kernel_temporary)
      : constant_(constant),
        non_constant_(non_constant),
        runtime_(runtime),
        kernel_temporary_(kernel_temporary) {}
  virtual ~MemoryManager() = default;

  const MemoryAllocator* get_constant_allocator() const { return constant_; }
  HierarchicalAllocator* get_non_constant_allocator() const { return non_constant_; }
  MemoryAllocator* get_runtime_allocator() const { return runtime_; }
  MemoryAllocator* get_kernel_temporary_allocator() const { return kernel_temporary_; }

 private:
  const MemoryAllocator* constant_;
  HierarchicalAllocator* non_constant_;
  MemoryAllocator* runtime_;
  MemoryAllocator* kernel_temporary_;
};

}  // namespace torch::executor

#endif  // TESTS_FAKES_EXECUTORCH_2023_EXECUTORCH_RUNTIME_EXECUTOR_MEMORY_MANAGER_H_
