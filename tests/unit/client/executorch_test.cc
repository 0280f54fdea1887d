// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// heapbroker/executorch.h over real memory. Compiled against each form of
// ExecuTorch's headers that there is: see CMakeLists.txt.
#include "heapbroker/executorch.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "executorch/runtime/platform/runtime.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/client/vulkan_fixture.h"

namespace heapbroker {
namespace {

using absl::StatusCode;
using executorch_names::Error;

template <typename Manager>
concept HasMethodAllocator = requires(Manager& manager) {
  manager.method_allocator();
};
constexpr bool kHasConstants = !HasMethodAllocator<ExecuTorchMemory::Manager>;

// The parts of a manager, whatever its form calls them.
template <typename Manager>
struct Parts {
  explicit Parts(Manager& manager) {
    if constexpr (HasMethodAllocator<Manager>) {
      runtime = manager.method_allocator();
      planned = manager.planned_memory();
      temporary = manager.temp_allocator();
    } else {
      constant = manager.get_constant_allocator();
      runtime = manager.get_runtime_allocator();
      planned = manager.get_non_constant_allocator();
      temporary = manager.get_kernel_temporary_allocator();
    }
  }

  const executorch_names::MemoryAllocator* constant = nullptr;  // In 2023's form.
  executorch_names::MemoryAllocator* runtime = nullptr;
  executorch_names::HierarchicalAllocator* planned = nullptr;
  executorch_names::MemoryAllocator* temporary = nullptr;
};

// What an allocator says of itself, where the version has it say so.
template <typename Allocator>
size_t UsedSizeOr(const Allocator& allocator, size_t otherwise) {
  if constexpr (requires { allocator.used_size(); }) {
    return allocator.used_size();
  } else {
    return otherwise;
  }
}

// Of more bytes than any machine has.
class VastArena final : public ArenaAllocator {
 public:
  absl::StatusOr<BufferRange> Allocate(Bytes, Bytes) override { return BufferRange(); }
  void Reset() override { used_ = Bytes(0); }
  Bytes size() const override { return Bytes(uint64_t{1} << 60); }
  Bytes used() const override { return used_; }
  Bytes peak() const override { return used_; }
  Bytes overflow() const override { return Bytes(0); }
  BufferRange planned() const override { return BufferRange(); }

 private:
  Bytes used_ = GiB(5);
};

class ExecuTorchTest : public VulkanImporterTest {
 protected:
  static void SetUpTestSuite() {
    VulkanImporterTest::SetUpTestSuite();
    executorch_names::runtime_init();
  }

  void SetUp() override {
    const MemoryPlan plan = {
        .non_constant = {{.size = KiB(4)}, {.size = Bytes(1000)}},
        .runtime = {.size = KiB(2)},
        .kernel_temporary = {.size = KiB(1), .memory = MemoryKind::kHostVisible},
        .kernel_temporary_overflow = OverflowPlan{.step = KiB(8)}};
    ASSERT_OK_AND_ASSIGN(memory_, MemoryManager::Create(*a_.client, *a_.importer, plan));
  }

  uint8_t* HostOf(const absl::StatusOr<BufferRange>& range) {
    return static_cast<uint8_t*>(range.value().host().value());
  }

  std::unique_ptr<MemoryManager> memory_;
};

TEST_F(ExecuTorchTest, ItsAllocatorsCutOurArenas) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ExecuTorchMemory> made,
                       ExecuTorchMemory::Create(*memory_));
  const Parts parts(made->manager());
  ArenaAllocator& arena = *memory_->get_runtime_allocator();
  uint8_t* const base = HostOf(arena.planned());
  EXPECT_EQ(parts.runtime->base_address(), base);
  EXPECT_EQ(parts.runtime->size(), 2048u);

  ASSERT_EQ(parts.runtime->allocate(3, 1), base);
  auto* const numbers = parts.runtime->allocateList<uint64_t>(8);
  ASSERT_NE(numbers, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(numbers) % alignof(uint64_t), 0u);
  EXPECT_EQ(reinterpret_cast<uint8_t*>(numbers), base + 8);
  EXPECT_NE(parts.runtime->allocateInstance<uint32_t>(), nullptr);
  EXPECT_EQ(arena.used(), Bytes(8 + 64 + 4));
  numbers[7] = 42;
  EXPECT_EQ(std::memcmp(base + 8 + 56, &numbers[7], 8), 0);
  parts.runtime->reset();
  EXPECT_EQ(arena.used(), Bytes(0));
}

TEST_F(ExecuTorchTest, ARefusedRequestIsNullAndLeavesTheCursor) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ExecuTorchMemory> made,
                       ExecuTorchMemory::Create(*memory_));
  const Parts parts(made->manager());
  ASSERT_NE(parts.runtime->allocate(100), nullptr);
  EXPECT_EQ(parts.runtime->allocate(2048), nullptr);
  EXPECT_EQ(parts.runtime->allocate(std::numeric_limits<size_t>::max()), nullptr);
  EXPECT_EQ(parts.runtime->allocate(1, 0), nullptr);
  EXPECT_EQ(parts.runtime->allocate(1, 3), nullptr);
  EXPECT_EQ(memory_->get_runtime_allocator()->used(), Bytes(100));
  EXPECT_NE(parts.runtime->allocate(0), nullptr);
  EXPECT_NE(parts.runtime->allocate(2048 - 100, 1), nullptr);
}

TEST_F(ExecuTorchTest, PlannedMemoryIsWhereOursIs) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ExecuTorchMemory> made,
                       ExecuTorchMemory::Create(*memory_));
  const Parts parts(made->manager());
  const HierarchicalAllocator& ours = *memory_->get_non_constant_allocator();
  for (const uint32_t id : {0u, 1u}) {
    auto found = parts.planned->get_offset_address(id, 17, 900);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found.get(), HostOf(ours.get_offset_address(id, Bytes(17), Bytes(900))));
  }
  EXPECT_TRUE(parts.planned->get_offset_address(1, 1000, 0).ok());
  EXPECT_EQ(parts.planned->get_offset_address(1, 1000, 1).error(), Error::MemoryAllocationFailed);
  EXPECT_EQ(parts.planned->get_offset_address(2, 0, 0).error(), Error::InvalidArgument);
}

TEST_F(ExecuTorchTest, TemporaryMemoryOverflowsAndIsReset) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ExecuTorchMemory> made,
                       ExecuTorchMemory::Create(*memory_));
  const Parts parts(made->manager());
  ArenaAllocator& arena = *memory_->get_kernel_temporary_allocator();
  void* const large = parts.temporary->allocate(4000, 64);
  ASSERT_NE(large, nullptr);
  std::memset(large, 7, 4000);
  EXPECT_EQ(arena.overflow(), KiB(8));
  parts.temporary->reset();
  parts.temporary->reset();
  EXPECT_EQ(arena.overflow(), Bytes(0));
}

TEST_F(ExecuTorchTest, TellsASizeOfMoreThan32BitsAsTheLargestItCan) {
  VastArena vast;
  ExecuTorchArena arena(vast, reinterpret_cast<uint8_t*>(uintptr_t{1} << 20));
  const executorch_names::MemoryAllocator& told = arena;
  EXPECT_EQ(told.size(), std::numeric_limits<uint32_t>::max());
  EXPECT_EQ(arena.used_size(), GiB(5).count());
  EXPECT_EQ(arena.free_size(), (uint64_t{1} << 60) - GiB(5).count());
  EXPECT_EQ(UsedSizeOr(told, arena.used_size()), arena.used_size());
}

TEST_F(ExecuTorchTest, ConstantsAreOneRunOfBytesWhereTheFormHasThem) {
  const MemoryPlan plan = {.constant = {.name = "weights", .size = KiB(64)}};
  {
    // The fake daemon makes every segment of two blocks.
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> memory,
                         MemoryManager::Create(*a_.client, *a_.importer, plan));
    const absl::Status made = ExecuTorchMemory::Create(*memory).status();
    if (!kHasConstants) {
      EXPECT_THAT(made, IsOk());
      return;
    }
    EXPECT_THAT(made, StatusIs(StatusCode::kFailedPrecondition, "one run of bytes"));
    ASSERT_THAT(memory->get_constant_allocator()->Seal(), IsOk());
  }
  daemon_.ChangeOpenSegmentReplies([](v1::OpenSegmentResponse& response) {
    response.mutable_blocks()->RemoveLast();
    response.set_size(response.blocks(0).size());
  });
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> memory,
                       MemoryManager::Create(*a_.client, *a_.importer, plan));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ExecuTorchMemory> made,
                       ExecuTorchMemory::Create(*memory));
  const executorch_names::MemoryAllocator& constant = *Parts(made->manager()).constant;
  EXPECT_EQ(constant.size(), KiB(32).count());
  EXPECT_EQ(constant.base_address(),
            HostOf(memory->get_constant_allocator()->get_offset_address(Bytes(0), Bytes(1))));
}

}  // namespace
}  // namespace heapbroker
