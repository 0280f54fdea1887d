// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What VulkanMemory does beyond the contract, as far as a real driver shows it.

#include "daemon/vulkan/vulkan_memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "daemon/vulkan/device_description.h"
#include "daemon/vulkan/driver_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process_facts.h"
#include "tests/support/sanitizer.h"

namespace heapbroker {
namespace {

constexpr Bytes kSize = MiB(16);

class VulkanMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<OpenedDevice> opened = OpenDevice(DeviceSelector{});
    ASSERT_TRUE(opened.ok()) << opened.status();
    device_ = std::make_unique<VulkanDevice>(std::move(opened->device));
    block_class_ = ClassesToTry(device_->info()).front();
  }

  std::unique_ptr<VulkanMemory> Make(VulkanMemoryOptions options) {
    absl::StatusOr<std::unique_ptr<VulkanMemory>> memory = VulkanMemory::Create(*device_, options);
    EXPECT_TRUE(memory.ok()) << memory.status();
    return *std::move(memory);
  }

  // Bytes of a fresh allocation of kSize that somebody has already written: a
  // software device's memory is a file, in which pages that nobody touched take
  // no space. Empty where the descriptor is no such file.
  std::optional<Bytes> TouchedBytes(VulkanMemoryOptions options) {
    const std::unique_ptr<VulkanMemory> memory = Make(options);
    const absl::StatusOr<DeviceAllocation> allocation = memory->Allocate(block_class_, kSize);
    EXPECT_TRUE(allocation.ok()) << allocation.status();
    struct stat file {};
    EXPECT_EQ(fstat(allocation->exported->fd(), &file), 0);
    if (!S_ISREG(file.st_mode)) return std::nullopt;
    constexpr uint64_t kBlock = 512;  // Of st_blocks, whatever the file system's are.
    return Bytes(static_cast<uint64_t>(file.st_blocks) * kBlock);
  }

  std::unique_ptr<VulkanDevice> device_;
  BlockClass block_class_;
};

TEST_F(VulkanMemoryTest, ClearsEveryPageOfFreshMemoryWhenToldToOnEitherPath) {
  for (ClearPath path : {ClearPath::kMapping, ClearPath::kTransfer}) {
    const std::optional<Bytes> touched = TouchedBytes({ClearMode::kAlways, path});
    if (!touched) GTEST_SKIP() << "this device's memory is not a file";
    EXPECT_GE(*touched, kSize);
  }
}

TEST_F(VulkanMemoryTest, ByDefaultLeavesMemoryAloneThatTheDriverGivesAsZeros) {
  if (!device_->fresh_memory_is_zero()) GTEST_SKIP() << "this driver promises nothing";
  const std::optional<Bytes> touched = TouchedBytes({});
  ASSERT_TRUE(touched.has_value());
  EXPECT_LT(*touched, MiB(1));
}

// Allocates until the process is at a limit of `limit` descriptors.
std::pair<std::vector<DeviceAllocation>, absl::Status> AllocateUntilRefused(VulkanMemory& memory,
                                                                            BlockClass block_class,
                                                                            rlim_t limit) {
  rlimit before{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit low = before;
  low.rlim_cur = limit;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const absl::Cleanup restore = [&] { setrlimit(RLIMIT_NOFILE, &before); };
  std::vector<DeviceAllocation> allocations;
  while (allocations.size() < limit) {
    absl::StatusOr<DeviceAllocation> allocation = memory.Allocate(block_class, KiB(64));
    if (!allocation.ok()) return {std::move(allocations), allocation.status()};
    allocations.push_back(*std::move(allocation));
  }
  return {std::move(allocations), absl::OkStatus()};
}

TEST_F(VulkanMemoryTest, RunningOutOfDescriptorsIsAnErrorThatLeavesNothingAllocated) {
  const std::unique_ptr<VulkanMemory> memory = Make({ClearMode::kAlways, ClearPath::kTransfer});
  const size_t open_before = OpenDescriptorCount(getpid()).value_or(0);
  // Where an allocation takes a descriptor of the driver's and one of its own,
  // one of two neighbouring limits lets the first pass and refuses the second.
  for (rlim_t limit : {64, 65}) {
    auto [allocations, refusal] = AllocateUntilRefused(*memory, block_class_, limit);
    EXPECT_EQ(refusal.code(), absl::StatusCode::kResourceExhausted) << refusal;
    EXPECT_THAT(std::string(refusal.message()),
                testing::AllOf(testing::HasSubstr("RLIMIT_NOFILE"),
                               testing::HasSubstr(std::to_string(limit))));
    for (const DeviceAllocation& allocation : allocations) memory->Free(allocation.id);
    allocations.clear();
    EXPECT_EQ(OpenDescriptorCount(getpid()).value_or(0), open_before);
  }
  EXPECT_TRUE(memory->Allocate(block_class_, KiB(64)).ok());
}

// Takes all mappings that the process may still have; gives them back when it goes.
class NoMappingsLeft {
 public:
  explicit NoMappingsLeft(size_t limit) : size_(2 * limit * page_) {
    last_.reserve(64);
    region_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(region_, MAP_FAILED);
    // Neighbours with different rights cannot become one mapping.
    for (size_t offset = 0; offset < size_; offset += 2 * page_) {
      if (mprotect(static_cast<char*>(region_) + offset, page_, PROT_READ) != 0) break;
    }
    // Splitting takes two at a time, so one may be left; nor do shared ones join.
    while (last_.size() < last_.capacity()) {
      void* const one = mmap(nullptr, page_, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (one == MAP_FAILED) return;
      last_.push_back(one);
    }
    ADD_FAILURE() << "the kernel gave more mappings than its limit of " << limit;
  }
  ~NoMappingsLeft() {
    for (void* one : last_) munmap(one, page_);
    munmap(region_, size_);
  }

 private:
  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t size_;
  void* region_ = MAP_FAILED;
  std::vector<void*> last_;
};

TEST_F(VulkanMemoryTest, RunningOutOfMappingsIsNotTakenForRunningOutOfMemory) {
  if (kHasSanitizer) GTEST_SKIP() << "a sanitizer ends the process when it has no mappings left";
  const std::unique_ptr<VulkanMemory> memory = Make({});
  const ProcessLimits limits = ReadProcessLimits();
  // Makes room on the heap, which cannot grow later.
  ASSERT_TRUE(memory->Allocate(block_class_, MiB(1)).ok());
  absl::Status refusal;
  {
    const NoMappingsLeft held(limits.memory_map_limit);
    refusal = memory->Allocate(block_class_, MiB(1)).status();
  }
  if (refusal.ok()) GTEST_SKIP() << "this driver maps nothing when it allocates";
  EXPECT_EQ(refusal.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refusal.message()),
              testing::AllOf(testing::HasSubstr("vm.max_map_count"),
                             testing::HasSubstr(std::to_string(limits.memory_map_limit))));
  EXPECT_TRUE(memory->Allocate(block_class_, MiB(1)).ok());
}

TEST_F(VulkanMemoryTest, ReportsOnHeapsWhereTheDriverHasFigures) {
  const std::unique_ptr<VulkanMemory> memory = Make({});
  EXPECT_EQ(memory->ReadHeaps().size(),
            device_->has_memory_budget() ? device_->info().heaps.size() : 0U);
  for (const HeapReport& report : memory->ReadHeaps()) EXPECT_GT(report.budget, Bytes());
}

TEST_F(VulkanMemoryTest, RefusesBlocksThatTheDeviceDoesNotHave) {
  const std::unique_ptr<VulkanMemory> memory = Make({});
  if (!device_->info().memory_types[block_class_.memory_type].exportable.dma_buf) {
    const absl::Status refusal =
        memory->Allocate({block_class_.memory_type, HandleType::kDmaBuf}, MiB(1)).status();
    EXPECT_EQ(refusal.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refusal.message()), testing::HasSubstr("as dma-buf"));
  }
  if (!device_->info().device_addresses) {
    BlockClass with_address = block_class_;
    with_address.device_address = true;
    EXPECT_EQ(memory->RequiredSize(with_address, MiB(1)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(VulkanMemoryTest, ClearingWhatWasFreedIsAnError) {
  const std::unique_ptr<VulkanMemory> memory = Make({});
  const absl::StatusOr<DeviceAllocation> allocation = memory->Allocate(block_class_, KiB(64));
  ASSERT_TRUE(allocation.ok()) << allocation.status();
  memory->Free(allocation->id);
  EXPECT_EQ(memory->Clear(block_class_, *allocation).code(), absl::StatusCode::kNotFound);
}

TEST_F(VulkanMemoryTest, RefusalsSayWhatIsAllowed) {
  const std::unique_ptr<VulkanMemory> memory = Make({});
  const std::string largest = std::to_string(memory->info().max_allocation_size.count());
  const absl::Status size = memory->RequiredSize(block_class_, Bytes::Max()).status();
  EXPECT_THAT(std::string(size.message()), testing::HasSubstr("allowed are 1 to " + largest));
  const absl::Status type = memory->Allocate({99, HandleType::kOpaqueFd}, MiB(1)).status();
  EXPECT_THAT(std::string(type.message()),
              testing::AllOf(testing::HasSubstr("memory type 99"),
                             testing::HasSubstr("allowed are the types {")));
}

TEST_F(VulkanMemoryTest, AMovedDeviceServesOn) {
  VulkanDevice moved = std::move(*device_);
  device_.reset();
  absl::StatusOr<std::unique_ptr<VulkanMemory>> memory = VulkanMemory::Create(moved, {});
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE((*memory)->Allocate(block_class_, KiB(64)).ok());
}

}  // namespace
}  // namespace heapbroker
