// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/vulkan_importer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "client/transport/connection.h"
#include "gtest/gtest.h"
#include "tests/support/process_facts.h"
#include "tests/support/status_matchers.h"
#include "tests/support/wait_for.h"
#include "tests/unit/client/vulkan_fixture.h"

namespace heapbroker {
namespace {

constexpr absl::StatusCode kPrecondition = absl::StatusCode::kFailedPrecondition;

TEST_F(VulkanImporterTest, WhatOneDeviceWritesAnotherOneReads) {
  ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = KiB(64)}));
  VulkanClient b(daemon_);
  ExpectSharing(a_, b, lease);
}

TEST_F(VulkanImporterTest, DedicatedBlocksAreSharedAsOneBufferEach) {
  source_->MakeFromNowOn({.dedicated = true});
  ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = KiB(64)}));
  ASSERT_TRUE(lease.facts().dedicated);
  VulkanClient b(daemon_);
  ExpectSharing(a_, b, lease);
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer one, a_.importer->Import(*lease.block(), kUsage));
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer other, a_.importer->Import(*lease.block(), kUsage));
  EXPECT_EQ(one.handle(), other.handle());
  EXPECT_THAT(a_.importer->Import(*lease.block(), VK_BUFFER_USAGE_VERTEX_BUFFER_BIT),
              StatusIs(kPrecondition, "does not cover"));
}

TEST_F(VulkanImporterTest, BuffersOfBlocksThatWereMadeForItHaveAddresses) {
  if (!a_.device->context().device_addresses) GTEST_SKIP() << "this device has no addresses";
  for (const bool dedicated : {false, true}) {
    source_->MakeFromNowOn({.device_address = true, .dedicated = dedicated});
    ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = KiB(64)}));
    ASSERT_OK_AND_ASSIGN(
        const DeviceBuffer buffer,
        a_.importer->Import(*lease.block(), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                                VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT));
    const VkBufferDeviceAddressInfo info{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                         .buffer = buffer.handle()};
    EXPECT_NE(vkGetBufferDeviceAddress(a_.device->context().device, &info), 0u);
    VulkanClient b(daemon_);
    ExpectSharing(a_, b, lease);
  }
}

TEST_F(VulkanImporterTest, ABlockIsImportedOnceWhileAnyoneUsesIt) {
  ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = Bytes(1000)}));
  {
    ASSERT_OK_AND_ASSIGN(DeviceBuffer first, a_.importer->Import(*lease.block(), kUsage));
    ASSERT_OK_AND_ASSIGN(const DeviceBuffer second,
                         a_.importer->Import(*lease.block(), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT));
    EXPECT_EQ(first.memory(), second.memory());
    EXPECT_EQ(first.mapped(), second.mapped());
    EXPECT_NE(first.handle(), second.handle());
    EXPECT_EQ(a_.importer->stats().imports, 1u);
    first = DeviceBuffer();
    EXPECT_FALSE(first.valid());
    EXPECT_EQ(a_.importer->stats().imports, 1u);
  }
  EXPECT_EQ(a_.importer->stats().imports, 0u);
  EXPECT_THAT(a_.importer->Import(*lease.block(), kUsage), IsOk());
}

TEST_F(VulkanImporterTest, ThreadsThatImportOneBlockShareTheImport) {
  ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = Bytes(1000)}));
  std::vector<DeviceBuffer> buffers(8);
  std::vector<std::thread> threads;
  for (DeviceBuffer& buffer : buffers) {
    threads.emplace_back([&] { buffer = a_.importer->Import(*lease.block(), kUsage).value(); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(a_.importer->stats().imports, 1u);
  for (const DeviceBuffer& buffer : buffers) EXPECT_EQ(buffer.memory(), buffers[0].memory());
}

TEST_F(VulkanImporterTest, TheSameIdOfAnotherSessionIsAnotherBlock) {
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<VulkanBlockSource> other_source,
                       VulkanBlockSource::Create());
  FakeDaemon other(*other_source);
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> other_client,
                       Client::Connect({.runtime_dir = other.runtime_dir()}));
  ASSERT_OK_AND_ASSIGN(const Lease here, a_.client->Allocate({.size = Bytes(1000)}));
  ASSERT_OK_AND_ASSIGN(const Lease there, other_client->Allocate({.size = Bytes(1000)}));
  ASSERT_EQ(here.facts().block_id, there.facts().block_id);
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer one, a_.importer->Import(*here.block(), kUsage));
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer two, a_.importer->Import(*there.block(), kUsage));
  EXPECT_NE(one.memory(), two.memory());
}

TEST_F(VulkanImporterTest, BuffersOutliveTheImporterTheLeaseAndTheDaemon) {
  ASSERT_OK_AND_ASSIGN(Lease lease, a_.client->Allocate({.size = Bytes(1000)}));
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<VulkanImporter> importer,
                       VulkanImporter::Create(a_.device->context()));
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer buffer, importer->Import(*lease.block(), kUsage));
  importer.reset();
  daemon_.Stop();
  lease = Lease();
  std::memset(buffer.mapped(), 0x5a, 1000);
  EXPECT_EQ(static_cast<unsigned char*>(buffer.mapped())[999], 0x5a);
}

TEST_F(VulkanImporterTest, ChecksRangesOfFlushes) {
  ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = Bytes(1000)}));
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer buffer, a_.importer->Import(*lease.block(), kUsage));
  EXPECT_THAT(buffer.Flush(Bytes(0), Bytes(1000)), IsOk());
  EXPECT_THAT(buffer.Invalidate(Bytes(1000), Bytes(0)), IsOk());
  EXPECT_THAT(buffer.Flush(Bytes(1), Bytes(1000)), StatusIs(absl::StatusCode::kOutOfRange, ""));
}

TEST_F(VulkanImporterTest, AnEmptyBufferDoesNothing) {
  const DeviceBuffer empty;
  EXPECT_EQ(empty.handle(), VkBuffer{VK_NULL_HANDLE});
  EXPECT_EQ(empty.mapped(), nullptr);
  EXPECT_EQ(empty.size(), Bytes(0));
  EXPECT_THAT(a_.importer->AcquireAll({empty}), IsOk());
  EXPECT_THAT(a_.importer->ReleaseAll({}), IsOk());
}

TEST_F(VulkanImporterTest, RefusesAPipeBeforeTheDriverCouldHangOnIt) {
  ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = Bytes(1000)}));
  int fds[2];
  ASSERT_EQ(pipe2(fds, O_CLOEXEC), 0);
  const UniqueFd read_end(fds[0]), write_end(fds[1]);
  AnswerFetchesWith(read_end);
  EXPECT_THAT(a_.importer->Import(*lease.block(), kUsage), StatusIs(kPrecondition, "a pipe"));
}

TEST_F(VulkanImporterTest, FailedImportsLeaveNoDescriptorBehind) {
  ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = Bytes(1000)}));
  // Passes every check and cannot be mapped, so the driver refuses it.
  const UniqueFd node(open("/dev/null", O_RDWR | O_CLOEXEC));
  AnswerFetchesWith(node);
  ASSERT_THAT(lease.fd(), IsOk());
  const size_t before = OpenDescriptorCount(getpid()).value();
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(a_.importer->Import(*lease.block(), kUsage).ok());
  }
  // gRPC's own threads may have one open for a moment.
  EXPECT_TRUE(WaitFor([&] { return OpenDescriptorCount(getpid()).value() <= before; }));
  EXPECT_EQ(a_.importer->stats().imports, 0u);
  EXPECT_EQ(a_.importer->stats().failed_imports, 1000u);
  EXPECT_EQ(a_.importer->stats().leaked_descriptors, 0u);
}

// A block whose facts are not those of its descriptor.
class LyingFactsTest : public VulkanImporterTest {
 protected:
  absl::Status ImportWith(void (*lie)(ImportFacts&)) {
    const auto connection = Connection::Connect({.runtime_dir = daemon_.runtime_dir()}).value();
    ImportFacts facts = lease_.facts();
    lie(facts);
    return a_.importer->Import(MemoryBlock(connection, facts), kUsage).status();
  }

  const Lease lease_ = a_.client->Allocate({.size = KiB(64)}).value();
};

TEST_F(LyingFactsTest, TheTruthPasses) {
  EXPECT_THAT(ImportWith([](ImportFacts&) {}), IsOk());
}

TEST_F(LyingFactsTest, TwiceTheSizeIsRefused) {
  EXPECT_THAT(ImportWith([](ImportFacts& facts) { facts.allocation_size = MiB(128); }),
              StatusIs(kPrecondition, "holds"));
}

TEST_F(LyingFactsTest, HalfTheSizeIsRefused) {
  EXPECT_THAT(ImportWith([](ImportFacts& facts) { facts.allocation_size = KiB(32); }),
              StatusIs(kPrecondition, "needs 65536 bytes"));
}

TEST_F(LyingFactsTest, AnotherMemoryTypeIsRefused) {
  EXPECT_THAT(ImportWith([](ImportFacts& facts) { facts.memory_type_index = 31; }),
              StatusIs(kPrecondition, "memory type 31"));
  EXPECT_THAT(ImportWith([](ImportFacts& facts) { facts.memory_property_flags = 0; }),
              StatusIs(kPrecondition, "0x0 at the broker"));
}

TEST_F(VulkanImporterTest, AUsageOfNothingIsInvalid) {
  ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = Bytes(1000)}));
  EXPECT_THAT(a_.importer->Import(*lease.block(), 0),
              StatusIs(absl::StatusCode::kInvalidArgument, "usage"));
}

TEST_F(VulkanImporterTest, MemoryOfAnotherDeviceIsRefusedByName) {
  MemfdBlockSource elsewhere;
  FakeDaemon other(elsewhere);
  ASSERT_OK_AND_ASSIGN(const std::shared_ptr<Client> client,
                       Client::Connect({.runtime_dir = other.runtime_dir()}));
  ASSERT_OK_AND_ASSIGN(const Lease lease, client->Allocate({.size = Bytes(1000)}));
  EXPECT_THAT(a_.importer->Import(*lease.block(), kUsage),
              StatusIs(kPrecondition, "no device (device UUID 64646464-"));
  EXPECT_THAT(a_.importer->Import(*lease.block(), kUsage),
              StatusIs(kPrecondition, a_.client->devices()[0].name));
  EXPECT_THAT(MinimalDevice::Create(client->devices()[0]),
              StatusIs(absl::StatusCode::kNotFound, a_.client->devices()[0].name));
}

TEST_F(VulkanImporterTest, StopsBeforeTheDevicesNumberOfAllocations) {
  VulkanContext context = a_.device->context();
  context.other_allocations = UINT32_MAX;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<VulkanImporter> importer,
                       VulkanImporter::Create(context));
  EXPECT_EQ(importer->stats().max_imports, 0u);
  ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = Bytes(1000)}));
  EXPECT_THAT(importer->Import(*lease.block(), kUsage),
              StatusIs(absl::StatusCode::kResourceExhausted, "0 of 0 imports"));
}

TEST_F(VulkanImporterTest, AnIncompleteContextIsInvalid) {
  VulkanContext context = a_.device->context();
  context.queue = VK_NULL_HANDLE;
  EXPECT_THAT(VulkanImporter::Create(context),
              StatusIs(absl::StatusCode::kInvalidArgument, "queue"));
  context = a_.device->context();
  context.queue_family = 1000;
  EXPECT_THAT(VulkanImporter::Create(context),
              StatusIs(absl::StatusCode::kInvalidArgument, "queue_family is 1000"));
}

TEST_F(VulkanImporterTest, ADeviceWithoutTheExtensionsIsRefused) {
  VulkanContext context = a_.device->context();
  const float priority = 1.0f;
  const VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                      .queueFamilyIndex = context.queue_family,
                                      .queueCount = 1,
                                      .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info{.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                .queueCreateInfoCount = 1,
                                .pQueueCreateInfos = &queue};
  ASSERT_EQ(vkCreateDevice(context.physical_device, &info, nullptr, &context.device), VK_SUCCESS);
  vkGetDeviceQueue(context.device, context.queue_family, 0, &context.queue);
  EXPECT_THAT(VulkanImporter::Create(context),
              StatusIs(kPrecondition, "RequiredDeviceExtensions()"));
  vkDestroyDevice(context.device, nullptr);
}

}  // namespace
}  // namespace heapbroker
