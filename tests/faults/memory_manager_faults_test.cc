// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A whole memory plan on a device whose fast memory the host cannot see, which this
// machine does not have.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "heapbroker/checksum.h"
#include "heapbroker/executorch.h"
#include "heapbroker/memory_manager.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/faults/daemon_under_faults.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

class MemoryManagerFaultsTest : public DaemonUnderFaults {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(kDiscreteGpu));
    ASSERT_NO_FATAL_FAILURE(ConnectUnder(kDiscreteGpu));
  }

  absl::StatusOr<std::unique_ptr<MemoryManager>> Create(const MemoryPlan& plan) {
    absl::StatusOr<VulkanImporter*> importer = Importer();
    if (!importer.ok()) return importer.status();
    return MemoryManager::Create(client(), **importer, plan);
  }
};

TEST_F(MemoryManagerFaultsTest, MemoryThatTheHostCannotSeeHasABufferAndAnOffsetAndNoPointer) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> manager,
                       Create({.non_constant = {{.size = KiB(64)}},
                               .runtime = {.size = KiB(4)},
                               .kernel_temporary = {.size = KiB(64)}}));
  ASSERT_OK_AND_ASSIGN(
      const BufferRange planned,
      manager->get_non_constant_allocator()->get_offset_address(0, KiB(4), KiB(8)));
  EXPECT_FALSE(planned.host_visible());
  EXPECT_THAT(planned.host(), StatusIs(StatusCode::kFailedPrecondition, "not host-visible"));
  EXPECT_FALSE(planned.device_address().has_value());

  ArenaAllocator& temporary = *manager->get_kernel_temporary_allocator();
  ASSERT_THAT(temporary.Allocate(Bytes(1), Bytes(1)), IsOk());
  ASSERT_OK_AND_ASSIGN(const BufferRange scratch, temporary.Allocate(KiB(8), Bytes(1024)));
  EXPECT_THAT(scratch.host(), StatusIs(StatusCode::kFailedPrecondition, "not host-visible"));
  // Whose address nobody knows: the offset is aligned.
  EXPECT_EQ(scratch.offset(), Bytes(1024));

  // What the device has is enough to work with.
  ASSERT_OK_AND_ASSIGN(const BufferRange seen,
                       manager->get_runtime_allocator()->Allocate(KiB(4), Bytes(64)));
  ASSERT_OK_AND_ASSIGN(void* const host, seen.host());
  std::memset(host, 0, KiB(4).count());
  ASSERT_OK_AND_ASSIGN(VulkanImporter* const importer, Importer());
  ASSERT_THAT(importer->SubmitAndWait([&](VkCommandBuffer commands) {
    vkCmdFillBuffer(commands, planned.buffer().handle(), planned.offset().count(),
                    planned.size().count(), 0xdecafbad);
    const VkMemoryBarrier barrier{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                  .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                         0, 1, &barrier, 0, nullptr, 0, nullptr);
    const VkBufferCopy last{planned.offset().count() + KiB(4).count(), seen.offset().count(),
                            KiB(4).count()};
    vkCmdCopyBuffer(commands, planned.buffer().handle(), seen.buffer().handle(), 1, &last);
    const VkMemoryBarrier to_host{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                  .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                         &to_host, 0, nullptr, 0, nullptr);
  }),
              IsOk());
  ASSERT_THAT(seen.Invalidate(), IsOk());
  uint32_t last = 0;
  std::memcpy(&last, static_cast<char*>(host) + KiB(4).count() - 4, 4);
  EXPECT_EQ(last, 0xdecafbadu);
}

TEST_F(MemoryManagerFaultsTest, ItsDeviceAddressIsWhatIsAligned) {
  ASSERT_OK_AND_ASSIGN(VulkanImporter* const importer, Importer());
  if (!importer->context().device_addresses) GTEST_SKIP() << "this device has no addresses";
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> manager,
                       Create({.kernel_temporary = {.size = KiB(256), .device_address = true}}));
  ArenaAllocator& temporary = *manager->get_kernel_temporary_allocator();
  ASSERT_THAT(temporary.Allocate(Bytes(1), Bytes(1)), IsOk());
  ASSERT_OK_AND_ASSIGN(const BufferRange range, temporary.Allocate(KiB(4), KiB(64)));
  EXPECT_FALSE(range.host_visible());
  ASSERT_TRUE(range.device_address().has_value());
  EXPECT_EQ(*range.device_address() % KiB(64).count(), 0u);
  EXPECT_NE(*range.device_address(), 0u);
}

TEST_F(MemoryManagerFaultsTest, WeightsThatTheHostCannotSeeAreWrittenThroughStaging) {
  std::string weights(100'001, '\0');
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<char>(i * 7 + i / 251);
  const MemoryPlan plan = {.constant = {.name = "weights", .size = Bytes(weights.size())}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> manager, Create(plan));
  ConstantAllocator& constant = *manager->get_constant_allocator();
  ASSERT_TRUE(constant.must_fill());
  ASSERT_THAT(constant.Write(Bytes(0), weights.data(), Bytes(weights.size())), IsOk());
  ASSERT_THAT(constant.Seal(), IsOk());
  EXPECT_EQ(constant.checksum(), ChecksumOf(weights.data(), Bytes(weights.size())));
  EXPECT_THAT(constant.Verify(), IsOk());
  ASSERT_OK_AND_ASSIGN(const BufferRange range,
                       constant.get_offset_address(Bytes(0), Bytes(weights.size())));
  EXPECT_THAT(range.host(), StatusIs(StatusCode::kFailedPrecondition, "not host-visible"));
}

TEST_F(MemoryManagerFaultsTest, ExecuTorchIsRefusedMemoryThatTheHostCannotSee) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> planned,
                       Create({.non_constant = {{.size = KiB(64)}}}));
  EXPECT_THAT(ExecuTorchMemory::Create(*planned),
              StatusIs(StatusCode::kFailedPrecondition, "planned memory in host memory"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<MemoryManager> temporary,
                       Create({.kernel_temporary = {.size = KiB(64)}}));
  EXPECT_THAT(ExecuTorchMemory::Create(*temporary),
              StatusIs(StatusCode::kFailedPrecondition, "kernel temporary memory"));
  ASSERT_OK_AND_ASSIGN(
      const std::unique_ptr<MemoryManager> visible,
      Create({.non_constant = {{.size = KiB(64), .memory = MemoryKind::kHostVisible}},
              .runtime = {.size = KiB(64)}}));
  EXPECT_THAT(ExecuTorchMemory::Create(*visible), IsOk());
}

}  // namespace
}  // namespace heapbroker
