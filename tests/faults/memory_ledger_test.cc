// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/memory_ledger.h"

#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker::faults {
namespace {

using testing::HasSubstr;

VkDeviceMemory Handle(uintptr_t number) { return reinterpret_cast<VkDeviceMemory>(number); }

class MemoryLedgerTest : public testing::Test {
 protected:
  MemoryLedgerTest() {
    memory_.memoryHeapCount = 1;
    memory_.memoryHeaps[0].size = 1000;
    memory_.memoryTypeCount = 2;
    memory_.memoryTypes[1].propertyFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  }

  static AllocationRequest Request(VkDeviceSize size, uint32_t type = 0) {
    AllocationRequest request;
    request.size = size;
    request.type = type;
    return request;
  }

  // As a driver would: asks, and adds what it may.
  static std::optional<Refusal> Allocate(MemoryLedger& ledger, const AllocationRequest& request,
                                         VkDeviceMemory memory) {
    std::optional<Refusal> refusal = ledger.Begin(request);
    if (!refusal) ledger.Add(request, memory);
    return refusal;
  }

  DevicePlan plan_;
  VkPhysicalDeviceMemoryProperties memory_{};
};

TEST_F(MemoryLedgerTest, AStrictDeviceReportsTheAllocationBeyondItsCount) {
  plan_.max_allocation_count = 2;
  MemoryLedger ledger(plan_, memory_);
  EXPECT_FALSE(Allocate(ledger, Request(10), Handle(1)));
  // One that the driver is still making counts.
  EXPECT_FALSE(ledger.Begin(Request(10)));
  const auto refusal = ledger.Begin(Request(10));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->result, VK_ERROR_TOO_MANY_OBJECTS);
  EXPECT_THAT(refusal->violation, HasSubstr("allocation number 3"));
  ledger.Cancel(Request(10));
  EXPECT_FALSE(ledger.Begin(Request(10)));
}

TEST_F(MemoryLedgerTest, ALenientDeviceLetsTheSamePass) {
  plan_.max_allocation_count = 1;
  plan_.max_allocation_size = Bytes(5);
  plan_.strict = false;
  MemoryLedger ledger(plan_, memory_);
  EXPECT_FALSE(Allocate(ledger, Request(10), Handle(1)));
  EXPECT_FALSE(Allocate(ledger, Request(5000), Handle(2)));
  EXPECT_FALSE(ledger.CheckMapping(Handle(1)));
  EXPECT_EQ(ledger.count(), 2u);
}

TEST_F(MemoryLedgerTest, FreedMemoryCountsUntilTheDriverHasFreedIt) {
  plan_.max_allocation_count = 1;
  MemoryLedger ledger(plan_, memory_);
  ASSERT_FALSE(Allocate(ledger, Request(10), Handle(1)));
  const std::optional<LiveMemory> freed = ledger.BeginFree(Handle(1));
  ASSERT_TRUE(freed);
  EXPECT_FALSE(ledger.BeginFree(Handle(1)));
  EXPECT_TRUE(ledger.Begin(Request(10)));
  EXPECT_EQ(ledger.HeapBytes(0), 10u);
  ledger.End(*freed);
  EXPECT_EQ(ledger.HeapBytes(0), 0u);
  EXPECT_FALSE(ledger.Begin(Request(10)));
}

TEST_F(MemoryLedgerTest, ReportsSizesThatNoHeapHasAndTypesThatThereAreNot) {
  MemoryLedger ledger(plan_, memory_);
  for (const AllocationRequest& request : {Request(0), Request(1001), Request(10, 2)}) {
    const auto refusal = ledger.Begin(request);
    ASSERT_TRUE(refusal);
    EXPECT_NE(refusal->violation, "");
  }
  EXPECT_EQ(ledger.count(), 0u);
}

TEST_F(MemoryLedgerTest, RefusesAboveTheRealLimitWhateverIsAdvertised) {
  plan_.max_allocation_size = Bytes(800);
  plan_.largest_real_allocation = Bytes(400);
  MemoryLedger ledger(plan_, memory_);
  for (VkDeviceSize size : {401, 801}) {
    const auto refusal = ledger.Begin(Request(size));
    ASSERT_TRUE(refusal) << size;
    EXPECT_EQ(refusal->result, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    EXPECT_EQ(refusal->violation, "");
  }
  EXPECT_FALSE(ledger.Begin(Request(400)));
}

TEST_F(MemoryLedgerTest, AnEnforcedHeapIsFullAtItsSizeAndImportsTakeNoneOfIt) {
  plan_.enforce_heaps = true;
  MemoryLedger ledger(plan_, memory_);
  ASSERT_FALSE(Allocate(ledger, Request(600), Handle(1)));
  const auto refusal = ledger.Begin(Request(401));
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->result, VK_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(refusal->violation, "");
  AllocationRequest import = Request(600);
  import.import = true;
  EXPECT_FALSE(ledger.Begin(import));
}

TEST_F(MemoryLedgerTest, RefusesToImportAnUnpaddedSize) {
  plan_.padding = Padding{Bytes(100), Bytes(4)};
  MemoryLedger ledger(plan_, memory_);
  AllocationRequest import = Request(99);
  import.import = true;
  import.handles = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  ASSERT_TRUE(ledger.Begin(import));
  EXPECT_EQ(ledger.Begin(import)->result, VK_ERROR_INVALID_EXTERNAL_HANDLE);
  import.size = 104;
  EXPECT_FALSE(ledger.Begin(import));
}

TEST_F(MemoryLedgerTest, ReportsHandlesThatTheDeviceDoesNotHave) {
  constexpr auto kOpaque = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
  plan_.external[kOpaque].exportable = false;
  plan_.external[kOpaque].dedicated_only = true;
  MemoryLedger ledger(plan_, memory_);
  AllocationRequest request = Request(10);
  EXPECT_FALSE(ledger.Begin(request));
  request.handles = kOpaque;
  request.dedicated = true;
  EXPECT_TRUE(ledger.Begin(request));
  request.import = true;
  EXPECT_FALSE(ledger.Begin(request));
  request.dedicated = false;
  ASSERT_TRUE(ledger.Begin(request));
  EXPECT_THAT(ledger.Begin(request)->violation, HasSubstr("dedicated"));
}

TEST_F(MemoryLedgerTest, MapsOnlyWhatTheHostSees) {
  MemoryLedger ledger(plan_, memory_);
  ASSERT_FALSE(Allocate(ledger, Request(10, 0), Handle(1)));
  ASSERT_FALSE(Allocate(ledger, Request(10, 1), Handle(2)));
  EXPECT_TRUE(ledger.CheckMapping(Handle(1)));
  EXPECT_FALSE(ledger.CheckMapping(Handle(2)));
  EXPECT_TRUE(ledger.CheckMapping(Handle(3)));
}

TEST_F(MemoryLedgerTest, BindsOnlyWhatFits) {
  plan_.max_buffer_size = Bytes(50);
  MemoryLedger ledger(plan_, memory_);
  ASSERT_FALSE(Allocate(ledger, Request(10), Handle(1)));
  EXPECT_FALSE(ledger.CheckBinding(Handle(1), 4, 6));
  EXPECT_TRUE(ledger.CheckBinding(Handle(1), 4, 7));
  EXPECT_TRUE(ledger.CheckBinding(Handle(1), 11, 0));
  EXPECT_TRUE(ledger.CheckBinding(Handle(2), 0, 1));
  EXPECT_FALSE(ledger.CheckBuffer(50));
  EXPECT_TRUE(ledger.CheckBuffer(51));
}

}  // namespace
}  // namespace heapbroker::faults
