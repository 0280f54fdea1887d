// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A MemoryManager as ExecuTorch's, for programs that have ExecuTorch's headers:
// the library neither has nor needs them, all of this is in the header. Serves the
// form of 2023, whose manager has four allocators, and the later one of method,
// planned and temporary memory: the one that the headers have is made.
#ifndef HEAPBROKER_EXECUTORCH_H_
#define HEAPBROKER_EXECUTORCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "executorch/runtime/core/span.h"
#include "executorch/runtime/executor/memory_manager.h"
#include "executorch/runtime/platform/log.h"
#include "heapbroker/allocators.h"
#include "heapbroker/memory_manager.h"

// Either may have nothing in it.
namespace executorch::runtime {}
namespace torch::executor {}

namespace heapbroker {

// ExecuTorch's classes, in whichever namespace its version has them.
namespace executorch_names {
using namespace ::executorch::runtime;
using namespace ::torch::executor;
}  // namespace executorch_names

namespace executorch_internal {

struct HostRange {
  uint8_t* data = nullptr;  // Null where there is no memory.
  uint64_t size = 0;
};

inline absl::StatusOr<HostRange> OnHost(const char* what, const BufferRange& range) {
  if (range.size() == Bytes(0)) return HostRange{};
  const absl::StatusOr<void*> host = range.host();
  if (host.ok()) return HostRange{static_cast<uint8_t*>(*host), range.size().count()};
  return absl::FailedPreconditionError(
      absl::StrCat("ExecuTorch needs ", what, " in host memory: ", host.status().message()));
}

// The sizes of its allocators have 32 bits.
inline constexpr uint64_t kMostOfAnAllocator = std::numeric_limits<uint32_t>::max();

// An allocator of ExecuTorch's own.
inline absl::Status AddAllocator(const char* what, const HostRange& range,
                                 std::vector<executorch_names::MemoryAllocator>& to) {
  if (range.size > kMostOfAnAllocator) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " has ", range.size, " bytes, and this version of ExecuTorch takes ",
                     kMostOfAnAllocator, " at most"));
  }
  to.emplace_back(static_cast<uint32_t>(range.size), range.data);
  return absl::OkStatus();
}

// A template, like what follows, so that of ExecuTorch's two forms only the one is
// compiled that its headers have.
template <typename Hierarchical>
class PlannedMemory {
 public:
  absl::Status Make(const HierarchicalAllocator& planned) {
    for (uint32_t id = 0; id < planned.memory_count(); ++id) {
      const absl::StatusOr<BufferRange> all =
          planned.get_offset_address(id, Bytes(0), planned.memory_size(id).value_or(Bytes(0)));
      if (!all.ok()) return all.status();
      const absl::StatusOr<HostRange> range = OnHost("planned memory", *all);
      if (!range.ok()) return range.status();
      if (absl::Status added = Add(*range); !added.ok()) return added;
    }
    if constexpr (kTakesSpans) {
      made_.emplace(Spans(spans_.data(), spans_.size()));
    } else {
      made_.emplace(static_cast<uint32_t>(allocators_.size()), allocators_.data());
    }
    return absl::OkStatus();
  }

  Hierarchical* get() { return &*made_; }

 private:
  using Spans = executorch_names::Span<executorch_names::Span<uint8_t>>;
  static constexpr bool kTakesSpans = std::is_constructible_v<Hierarchical, Spans>;

  absl::Status Add(const HostRange& range) {
    if constexpr (!kTakesSpans) return AddAllocator("planned memory", range, allocators_);
    spans_.emplace_back(range.data, static_cast<size_t>(range.size));
    return absl::OkStatus();
  }

  std::vector<executorch_names::Span<uint8_t>> spans_;
  std::vector<executorch_names::MemoryAllocator> allocators_;
  std::optional<Hierarchical> made_;
};

// Newer versions ask an allocator how full it is, older ones have no such functions
// to override: so they stand in a class in which none says that it does.
class ArenaSizes : public executorch_names::MemoryAllocator {
 public:
  virtual size_t used_size() const { return arena_.used().count(); }
  // Of the planned memory, wherever the used bytes lie.
  virtual size_t free_size() const {
    return arena_.size().count() - std::min(arena_.used(), arena_.size()).count();
  }

 protected:
  ArenaSizes(ArenaAllocator& arena, uint8_t* base)
      : MemoryAllocator(static_cast<uint32_t>(std::min(arena.size().count(), kMostOfAnAllocator)),
                        base),
        arena_(arena) {}

  ArenaAllocator& arena_;
};

}  // namespace executorch_internal

// An arena as ExecuTorch's MemoryAllocator. Where ArenaAllocator::Allocate has an
// error, allocate() logs it and returns null; and null is all that an arena of
// nothing has. ExecuTorch is told at most 2^32 - 1 as its size, and gets all of it.
//
// Not thread-safe, as the arena.
class ExecuTorchArena final : public executorch_internal::ArenaSizes {
 public:
  // `base` is where the arena's planned memory begins for the host; null if it has
  // none. The arena must outlive this.
  ExecuTorchArena(ArenaAllocator& arena, uint8_t* base) : ArenaSizes(arena, base) {}

  void* allocate(size_t size, size_t alignment = kDefaultAlignment) override {
    const absl::StatusOr<BufferRange> range = arena_.Allocate(Bytes(size), Bytes(alignment));
    const absl::StatusOr<void*> host = range.ok() ? range->host() : range.status();
    if (host.ok()) return *host;
    ET_LOG(Error, "%s", std::string(host.status().message()).c_str());
    return nullptr;
  }
  void reset() override { arena_.Reset(); }
};

// ExecuTorch's MemoryManager, and all that it refers to, over one of ours:
//
//   constant (2023)                 the segment as it is: base_address() and size().
//                                   To fill it, use ConstantAllocator
//   non-constant; planned           the planned buffers by memory id
//   runtime; method                 the runtime arena
//   kernel temporary; temporary     the kernel temporary arena, overflow included
//
// ExecuTorch works with host memory: what it gets must be host-visible.
//
// Not thread-safe.
class ExecuTorchMemory {
 public:
  using Manager = executorch_names::MemoryManager;

  // `memory` must outlive it.
  //   FAILED_PRECONDITION  something is not host-visible, or larger than this version
  //                        of ExecuTorch can be told; for the constants of 2023's form
  //                        also a segment of several blocks
  static absl::StatusOr<std::unique_ptr<ExecuTorchMemory>> Create(const MemoryManager& memory) {
    std::unique_ptr<ExecuTorchMemory> made(new ExecuTorchMemory());
    if (absl::Status status = made->MakeArenas(memory); !status.ok()) return status;
    absl::Status status = made->planned_.Make(*memory.get_non_constant_allocator());
    if (!status.ok()) return status;
    status = made->MakeManager(*memory.get_constant_allocator(), made->manager_);
    if (!status.ok()) return status;
    return made;
  }
  ExecuTorchMemory(const ExecuTorchMemory&) = delete;
  ExecuTorchMemory& operator=(const ExecuTorchMemory&) = delete;

  // For Program::load_method. Lives as long as this.
  Manager& manager() { return *manager_; }

 private:
  using Allocator = executorch_names::MemoryAllocator;
  using Hierarchical = executorch_names::HierarchicalAllocator;

  ExecuTorchMemory() = default;

  static absl::Status MakeArena(const char* what, ArenaAllocator& arena,
                                std::optional<ExecuTorchArena>& made) {
    const auto planned = executorch_internal::OnHost(what, arena.planned());
    if (!planned.ok()) return planned.status();
    made.emplace(arena, planned->data);
    return absl::OkStatus();
  }

  absl::Status MakeArenas(const MemoryManager& memory) {
    absl::Status status = MakeArena("runtime memory", *memory.get_runtime_allocator(), runtime_);
    if (!status.ok()) return status;
    return MakeArena("kernel temporary memory", *memory.get_kernel_temporary_allocator(),
                     temporary_);
  }

  absl::Status MakeConstant(const ConstantAllocator& constant) {
    const absl::StatusOr<BufferRange> all = constant.get_offset_address(Bytes(0), constant.size());
    if (!all.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "ExecuTorch needs the constants in one run of bytes: ", all.status().message()));
    }
    const auto range = executorch_internal::OnHost("the constants", *all);
    if (!range.ok()) return range.status();
    return executorch_internal::AddAllocator("the constant segment", *range, constant_);
  }

  template <typename AnyManager>
  absl::Status MakeManager(const ConstantAllocator& constant, std::optional<AnyManager>& made) {
    if constexpr (std::is_constructible_v<AnyManager, Allocator*, Hierarchical*, Allocator*>) {
      made.emplace(&*runtime_, planned_.get(), &*temporary_);
      return absl::OkStatus();
    } else {
      if (absl::Status status = MakeConstant(constant); !status.ok()) return status;
      made.emplace(&constant_.front(), planned_.get(), &*runtime_, &*temporary_);
      return absl::OkStatus();
    }
  }

  std::optional<ExecuTorchArena> runtime_;
  std::optional<ExecuTorchArena> temporary_;
  executorch_internal::PlannedMemory<Hierarchical> planned_;
  std::vector<Allocator> constant_;  // One, in the form that has it.
  std::optional<Manager> manager_;
};

}  // namespace heapbroker
#endif  // HEAPBROKER_EXECUTORCH_H_
