// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Imports of dma-bufs, for a driver that exports some.

#include <sys/mman.h>
#include <unistd.h>

#include <memory>

#include "gtest/gtest.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/client/vulkan_fixture.h"

namespace heapbroker {
namespace {

constexpr absl::StatusCode kPrecondition = absl::StatusCode::kFailedPrecondition;

class DmaBufImporterTest : public VulkanImporterTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(a_.device->context().dma_bufs) << "run this in tests/drivers/dmabuf-vm";
    source_->MakeFromNowOn({.handle_type = HandleType::kDmaBuf});
  }
};

TEST_F(DmaBufImporterTest, WhatOneDeviceWritesAnotherOneReads) {
  for (const Bytes size : {Bytes(1000), KiB(64), MiB(96)}) {
    ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = size}));
    ASSERT_EQ(lease.facts().handle_type, HandleType::kDmaBuf);
    VulkanClient b(daemon_);
    ExpectSharing(a_, b, lease);
  }
}

TEST_F(DmaBufImporterTest, RefusesOtherFilesAndDmaBufsThatAreTooSmall) {
  ASSERT_OK_AND_ASSIGN(const Lease small, a_.client->Allocate({.size = KiB(64)}));
  ASSERT_OK_AND_ASSIGN(const int small_fd, small.fd());
  const UniqueFd too_small = DuplicateFd(small_fd).value();
  ASSERT_OK_AND_ASSIGN(const Lease large, a_.client->Allocate({.size = MiB(1)}));
  AnswerFetchesWith(too_small);
  EXPECT_THAT(a_.importer->Import(*large.block(), kUsage), StatusIs(kPrecondition, "holds"));
  const UniqueFd file(memfd_create("block", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 1 << 20), 0);
  ASSERT_OK_AND_ASSIGN(const Lease other, a_.client->Allocate({.size = KiB(64)}));
  AnswerFetchesWith(file);
  EXPECT_THAT(a_.importer->Import(*other.block(), kUsage), StatusIs(kPrecondition, "no dma-buf"));
}

TEST_F(DmaBufImporterTest, ADeviceThatWasNotMadeForThemIsToldHowToBe) {
  VulkanContext context = a_.device->context();
  context.dma_bufs = false;
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<VulkanImporter> importer,
                       VulkanImporter::Create(context));
  ASSERT_OK_AND_ASSIGN(const Lease lease, a_.client->Allocate({.size = KiB(64)}));
  EXPECT_THAT(importer->Import(*lease.block(), kUsage),
              StatusIs(kPrecondition, "DmaBufDeviceExtensions()"));
}

}  // namespace
}  // namespace heapbroker
