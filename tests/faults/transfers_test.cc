// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Uploads and downloads of memory that the host cannot map, on devices that this
// machine does not have.
#include "heapbroker/transfers.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "heapbroker/memory_refusal.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/faults/daemon_under_faults.h"

namespace heapbroker {
namespace {

using absl::StatusCode;
using Owner = TransferOptions::Owner;

// What the host can map and what it cannot, one of the two not coherent.
constexpr char kDiscrete[] = R"(
device gpu
  deviceType discrete
  memoryHeap 256MiB device_local
  memoryHeap 512MiB none
  memoryType 0 device_local
  memoryType 1 host_visible|host_coherent
  memoryType 1 host_visible|host_cached
)";
constexpr char kOneQueue[] = "  queueFamily compute|transfer\n";

std::string Pattern(size_t size) {
  std::string data(size, '\0');
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<char>(i * 7 + i / 251);
  return data;
}

// With one queue family, with a family for transfers beside it, and with a second queue
// for transfers in the same family.
class TransfersTest : public DaemonUnderFaults, public testing::WithParamInterface<const char*> {
 protected:
  std::string Plan() const { return absl::StrCat(kDiscrete, GetParam()); }

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(absl::StrCat(kDiscrete, kOneQueue)));
    ASSERT_NO_FATAL_FAILURE(ConnectUnder(Plan()));
    ASSERT_OK_AND_ASSIGN(importer_, Importer());
    ASSERT_NO_FATAL_FAILURE(MakeTransfers({.piece = KiB(64)}));
    ASSERT_OK_AND_ASSIGN(lease_, Allocate(KiB(512), MemoryKind::kDeviceLocal));
    ASSERT_OK_AND_ASSIGN(buffer_, importer_->Import(*lease_.block(), kUsage));
    ASSERT_EQ(buffer_.mapped(), nullptr);
  }
  void TearDown() override {
    transfers_.reset();
    buffer_ = DeviceBuffer();
    lease_ = Lease();
    DaemonUnderFaults::TearDown();
  }
  void MakeTransfers(const TransfersOptions& options) {
    ASSERT_OK_AND_ASSIGN(transfers_, Transfers::Create(client(), *importer_, options));
  }
  void Acquire() { ASSERT_THAT(importer_->AcquireAll({buffer_}), IsOk()); }
  void Release() { ASSERT_THAT(importer_->ReleaseAll({buffer_}), IsOk()); }
  // Until SIGCONT. The signal alone does not mean that all of them have noticed.
  void StopTheDaemonsThreads() {
    ASSERT_THAT(daemon_->process().Signal(SIGSTOP), IsOk());
    const std::string threads = absl::StrCat("/proc/", daemon_->process().pid(), "/task");
    ASSERT_TRUE(WaitFor([&] {
      for (const auto& thread : std::filesystem::directory_iterator(threads)) {
        std::ifstream file(thread.path() / "stat");
        const std::string stat(std::istreambuf_iterator<char>(file), {});
        // Its name, which stands before, ends with the last parenthesis.
        if (stat.find(" T ", stat.rfind(')')) == std::string::npos) return false;
      }
      return true;
    }));
  }
  // What the buffer holds, by whatever way.
  std::string Read(Bytes offset, Bytes size) {
    std::string data(size.count(), '\0');
    EXPECT_THAT(transfers_->Download(buffer_, offset, data.data(), size), IsOk());
    return data;
  }

  static constexpr VkBufferUsageFlags kUsage =
      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  VulkanImporter* importer_ = nullptr;
  std::unique_ptr<Transfers> transfers_;
  Lease lease_;
  DeviceBuffer buffer_;
};

TEST_P(TransfersTest, WhatIsUploadedIsDownloadedInPiecesThatDoNotDivideIt) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  const std::string data = Pattern(300'001);
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(13), data.data(), Bytes(data.size())), IsOk());
  EXPECT_TRUE(Read(Bytes(13), Bytes(data.size())) == data);
  // Nothing beside it.
  const std::string part = Pattern(5);
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(20), part.data(), Bytes(5)), IsOk());
  std::string expected = data;
  expected.replace(7, 5, part);
  EXPECT_TRUE(Read(Bytes(13), Bytes(data.size())) == expected);
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, ABufferThatNobodyHasAcquiredIsTakenAndGivenBack) {
  const std::string data = Pattern(200'000);
  const TransferOptions external{.owner = Owner::kExternal};
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), Bytes(data.size()), external),
              IsOk());
  std::string read(data.size(), '\0');
  ASSERT_THAT(transfers_->Download(buffer_, Bytes(0), read.data(), Bytes(read.size()), external),
              IsOk());
  EXPECT_TRUE(read == data);
  // As another one does after that.
  ASSERT_NO_FATAL_FAILURE(Acquire());
  EXPECT_TRUE(Read(Bytes(0), Bytes(data.size())) == data);
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, WorkOfTheDeviceComesBeforeAndAfter) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  ASSERT_THAT(importer_->SubmitAndWait([&](VkCommandBuffer commands) {
    vkCmdFillBuffer(commands, buffer_.handle(), 0, VK_WHOLE_SIZE, 0x61616161);
  }),
              IsOk());
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(4), "bbbb", Bytes(4)), IsOk());
  ASSERT_THAT(importer_->SubmitAndWait([&](VkCommandBuffer commands) {
    const VkBufferCopy region{.srcOffset = 0, .dstOffset = 12, .size = 12};
    vkCmdCopyBuffer(commands, buffer_.handle(), buffer_.handle(), 1, &region);
  }),
              IsOk());
  EXPECT_EQ(Read(Bytes(0), Bytes(24)), "aaaabbbbaaaaaaaabbbbaaaa");
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, ProgressIsToldAfterEachPiece) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  std::vector<uint64_t> told;
  TransferOptions options;
  options.on_progress = [&](const TransferProgress& progress) {
    EXPECT_EQ(progress.total, KiB(300));
    told.push_back(progress.done.count() / KiB(1).count());
  };
  const std::string data = Pattern(KiB(300).count());
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(300), options), IsOk());
  EXPECT_THAT(told, testing::ElementsAre(64, 128, 192, 256, 300));
  told.clear();
  std::string read(data.size(), '\0');
  ASSERT_THAT(transfers_->Download(buffer_, Bytes(0), read.data(), KiB(300), options), IsOk());
  EXPECT_THAT(told, testing::ElementsAre(64, 128, 192, 256, 300));
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, SeveralCopiesAreOnTheirWayAtTheSameTime) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  // The first piece is waited for only when there is no staging buffer for another one.
  uint64_t produced = 0;
  uint64_t produced_at_first_progress = 0;
  TransferOptions options;
  options.on_progress = [&](const TransferProgress& progress) {
    if (progress.done == KiB(64)) produced_at_first_progress = produced;
  };
  ASSERT_THAT(transfers_->UploadFrom(
                  buffer_, Bytes(0), KiB(512),
                  [&](void*, Bytes) {
                    ++produced;
                    return absl::OkStatus();
                  },
                  options),
              IsOk());
  EXPECT_EQ(produced, 8u);
  EXPECT_EQ(produced_at_first_progress, 3u);
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, CancellationEndsItBetweenPiecesAndLeavesTheBufferItsOwners) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  const std::string data = Pattern(KiB(512).count());
  TransferOptions options{.cancellation = std::make_shared<Cancellation>()};
  options.on_progress = [&](const TransferProgress&) { options.cancellation->Cancel(); };
  EXPECT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512), options),
              StatusIs(StatusCode::kCancelled, "of 524288 bytes"));
  EXPECT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512), options),
              StatusIs(StatusCode::kCancelled, "after 0 of 524288 bytes"));
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512)), IsOk());
  std::string read(data.size(), '\0');
  options.cancellation = std::make_shared<Cancellation>();
  EXPECT_THAT(transfers_->Download(buffer_, Bytes(0), read.data(), KiB(512), options),
              StatusIs(StatusCode::kCancelled, "of 524288 bytes"));
  EXPECT_TRUE(Read(Bytes(0), KiB(512)) == data);
  EXPECT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512),
                                 {.timeout = absl::ZeroDuration()}),
              StatusIs(StatusCode::kDeadlineExceeded, "0 of 524288 bytes"));
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, LeasingStagingBuffersIsPartOfItsTime) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  const std::string data = Pattern(KiB(64).count());
  ASSERT_NO_FATAL_FAILURE(StopTheDaemonsThreads());
  const absl::Time begin = absl::Now();
  EXPECT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(64),
                                 {.timeout = absl::Milliseconds(100)}),
              StatusIs(StatusCode::kDeadlineExceeded, ""));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(3)) << "less than a call takes by default";
  ASSERT_THAT(daemon_->process().Signal(SIGCONT), IsOk());
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(64)), IsOk());
  EXPECT_TRUE(Read(Bytes(0), KiB(64)) == data);
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, StagingBuffersAreGivenUpWhereTheDaemonDoesNotAnswer) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  const std::string data = Pattern(KiB(64).count());
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(64)), IsOk());
  ASSERT_NO_FATAL_FAILURE(StopTheDaemonsThreads());
  EXPECT_THAT(transfers_->ReleaseStaging({.timeout = absl::Milliseconds(100)}),
              StatusIs(StatusCode::kDeadlineExceeded, ""));
  ASSERT_THAT(daemon_->process().Signal(SIGCONT), IsOk());
  EXPECT_TRUE(WaitFor([&] { return Held().leased_blocks == 1; }));
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, IsCancelledWhileItWaitsForAStagingBuffer) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  const absl::Status full = Allocate(GiB(1)).status();
  ASSERT_TRUE(RefusalOf(full).has_value()) << full;
  ASSERT_OK_AND_ASSIGN(Lease all, Allocate(Bytes(RefusalOf(full)->largest_now)));
  const auto cancellation = std::make_shared<Cancellation>();
  std::thread canceller([&] {
    EXPECT_TRUE(WaitFor([&] {
      uint64_t waiting = 0;
      const v1::GetStatsResponse stats = Stats();
      for (const v1::HeapStats& heap : stats.devices(0).heaps()) {
        waiting += heap.waiting_requests();
      }
      return waiting == 1;
    }));
    cancellation->Cancel();
  });
  const std::string data = Pattern(KiB(512).count());
  EXPECT_THAT(
      transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512), {.cancellation = cancellation}),
      StatusIs(StatusCode::kCancelled, ""));
  canceller.join();
  ASSERT_THAT(all.Release(), IsOk());
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512)), IsOk());
  EXPECT_TRUE(Read(Bytes(0), KiB(512)) == data);
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, TheErrorOfWhoeverProducesOrConsumesIsReturned) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  int calls = 0;
  const auto fail_at_third = [&] {
    return ++calls == 3 ? absl::DataLossError("the file is too short") : absl::OkStatus();
  };
  EXPECT_THAT(transfers_->UploadFrom(buffer_, Bytes(0), KiB(512),
                                     [&](void*, Bytes) { return fail_at_third(); }),
              StatusIs(StatusCode::kDataLoss, "too short"));
  calls = 0;
  EXPECT_THAT(transfers_->DownloadTo(buffer_, Bytes(0), KiB(512),
                                     [&](const void*, Bytes) { return fail_at_third(); }),
              StatusIs(StatusCode::kDataLoss, "too short"));
  EXPECT_EQ(calls, 3);
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, WhateverCallOfTheDriverFailsTheNextTransferWorks) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  const std::string data = Pattern(KiB(512).count());
  // The first of a kind makes what a transfer cannot do without; what is made after that
  // would only make it faster.
  const struct {
    const char* call;
    bool needed;
  } kFaults[] = {{"vkCreateBuffer:1", true},       {"import:1", true},
                 {"vkMapMemory:1", true},          {"vkCreateFence:1", true},
                 {"vkCreateCommandPool:1", true},  {"vkQueueSubmit:1", true},
                 {"vkWaitForFences:1", true},      {"import:2", false},
                 {"vkCreateCommandPool:2", false}, {"vkQueueSubmit:2", false},
                 {"vkQueueSubmit:5", true},        {"vkQueueSubmit:9", true},
                 {"vkWaitForFences:5", true},      {"vkWaitForFences:9", true}};
  for (const auto& fault : kFaults) {
    ASSERT_NO_FATAL_FAILURE(MakeTransfers({.piece = KiB(64)}));
    const uint64_t faults = client_file().Device("gpu").faults;
    client_file().Write(
        absl::StrCat(Plan(), "\n  fault ", fault.call, ":error(VK_ERROR_OUT_OF_HOST_MEMORY)\n"));
    EXPECT_EQ(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512)).ok(), !fault.needed)
        << fault.call;
    client_file().Write(Plan());
    EXPECT_EQ(client_file().Device("gpu").faults, faults + 1) << fault.call;
    ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512)), IsOk()) << fault.call;
    ASSERT_TRUE(Read(Bytes(0), KiB(512)) == data) << fault.call;
  }
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, WhatWouldOnlyMakeItFasterMayFailInAnyWay) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  const std::string data = Pattern(KiB(512).count());
  client_file().Write(
      absl::StrCat(Plan(), "\n  fault import:2:error(VK_ERROR_INVALID_EXTERNAL_HANDLE)\n"));
  EXPECT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512)), IsOk());
  client_file().Write(Plan());
  EXPECT_TRUE(Read(Bytes(0), KiB(512)) == data);
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, ADownloadThatFailsLeavesTheNextOneInOrder) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  const std::string data = Pattern(KiB(512).count());
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512)), IsOk());
  std::string read(data.size(), '\0');
  for (const char* call : {"vkQueueSubmit:6", "vkQueueSubmit:11", "vkWaitForFences:5"}) {
    ASSERT_THAT(transfers_->ReleaseStaging(), IsOk());
    client_file().Write(
        absl::StrCat(Plan(), "\n  fault ", call, ":error(VK_ERROR_OUT_OF_HOST_MEMORY)\n"));
    EXPECT_FALSE(transfers_->Download(buffer_, Bytes(0), read.data(), KiB(512)).ok()) << call;
    client_file().Write(Plan());
    EXPECT_TRUE(Read(Bytes(0), KiB(512)) == data) << call;
  }
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, StagingBuffersAreKeptAndGivenBack) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  const std::string data = Pattern(KiB(512).count());
  EXPECT_EQ(Held().leased_blocks, 1u);
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(64)), IsOk());
  EXPECT_EQ(Held().leased_blocks, 2u) << "one piece needs one";
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512)), IsOk());
  EXPECT_EQ(Held().leased_blocks, 4u);
  EXPECT_TRUE(Read(Bytes(0), KiB(512)) == data);
  EXPECT_EQ(Held().leased_blocks, 7u);
  ASSERT_THAT(transfers_->ReleaseStaging(), IsOk());
  EXPECT_EQ(Held().leased_blocks, 1u);
  EXPECT_TRUE(Read(Bytes(0), KiB(512)) == data);
  transfers_.reset();
  EXPECT_EQ(Held().leased_blocks, 1u);
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, WithoutMemoryForMoreOneStagingBufferIsEnough) {
  ASSERT_NO_FATAL_FAILURE(Acquire());
  ASSERT_NO_FATAL_FAILURE(MakeTransfers({.piece = KiB(256)}));
  const absl::Status full = Allocate(GiB(1)).status();
  ASSERT_TRUE(RefusalOf(full).has_value()) << full;
  ASSERT_OK_AND_ASSIGN(const Lease all_but_one_piece,
                       Allocate(Bytes(RefusalOf(full)->largest_now) - KiB(400)));
  const std::string data = Pattern(KiB(512).count());
  ASSERT_THAT(transfers_->Upload(buffer_, Bytes(0), data.data(), KiB(512)), IsOk());
  EXPECT_EQ(Held().leased_blocks, 3u);
  ASSERT_THAT(transfers_->ReleaseStaging(), IsOk());
  EXPECT_TRUE(Read(Bytes(0), KiB(512)) == data);
  EXPECT_EQ(Held().leased_blocks, 3u);
  ASSERT_NO_FATAL_FAILURE(Release());
}

TEST_P(TransfersTest, RangesAndOptionsAreChecked) {
  char byte = 0;
  EXPECT_THAT(transfers_->Upload(buffer_, KiB(512), &byte, Bytes(1)),
              StatusIs(StatusCode::kOutOfRange, "524288"));
  EXPECT_THAT(transfers_->Download(buffer_, Bytes::Max(), &byte, Bytes(2)),
              StatusIs(StatusCode::kInvalidArgument, "2^64"));
  EXPECT_THAT(transfers_->Upload(buffer_, KiB(512), nullptr, Bytes(0)), IsOk());
  EXPECT_EQ(Held().leased_blocks, 1u) << "nothing was staged";
  EXPECT_THAT(Transfers::Create(client(), *importer_, {.piece = Bytes(0)}),
              StatusIs(StatusCode::kInvalidArgument, "piece"));
  EXPECT_THAT(Transfers::Create(client(), *importer_, {.in_flight = 0}),
              StatusIs(StatusCode::kInvalidArgument, "from 1 to 64"));
}

TEST_P(TransfersTest, TheHostIsShownWhatTheDeviceWroteBeforeItReadsIt) {
  ASSERT_OK_AND_ASSIGN(const Lease cached, Allocate(KiB(256), MemoryKind::kHostCached));
  ASSERT_OK_AND_ASSIGN(const DeviceBuffer mapped, importer_->Import(*cached.block(), kUsage));
  ASSERT_THAT(importer_->AcquireAll({mapped}), IsOk());
  ASSERT_THAT(importer_->SubmitAndWait([&](VkCommandBuffer commands) {
    vkCmdFillBuffer(commands, mapped.handle(), 0, VK_WHOLE_SIZE, 0x01010101);
  }),
              IsOk());
  std::string read(KiB(256).count(), '\0');
  // By a submission, of which there is no other sign on a device like this one.
  client_file().Write(
      absl::StrCat(Plan(), "\n  fault vkQueueSubmit:1:error(VK_ERROR_OUT_OF_HOST_MEMORY)\n"));
  EXPECT_FALSE(transfers_->Download(mapped, Bytes(0), read.data(), KiB(256)).ok());
  client_file().Write(Plan());
  EXPECT_THAT(transfers_->Download(mapped, Bytes(0), read.data(), KiB(256)), IsOk());
  EXPECT_TRUE(read == std::string(read.size(), '\1'));
  EXPECT_THAT(importer_->ReleaseAll({mapped}), IsOk());
}

TEST_P(TransfersTest, OneQueueIsNotOfTwoFamilies) {
  VulkanContext context = importer_->context();
  context.transfer_queue = context.queue;
  context.transfer_queue_family = context.queue_family == 0 ? 1 : 0;
  EXPECT_THAT(VulkanImporter::Create(context),
              StatusIs(StatusCode::kInvalidArgument, "transfer_queue_family is"));
}

TEST_P(TransfersTest, MemoryThatTheHostReachesNeedsNoStagingOnItsFastSide) {
  ASSERT_OK_AND_ASSIGN(const Lease visible, Allocate(KiB(256), MemoryKind::kHostVisible));
  ASSERT_OK_AND_ASSIGN(const Lease cached, Allocate(KiB(256), MemoryKind::kHostCached));
  const std::string data = Pattern(KiB(256).count());
  for (const Lease* lease : {&visible, &cached}) {
    ASSERT_OK_AND_ASSIGN(const DeviceBuffer mapped, importer_->Import(*lease->block(), kUsage));
    ASSERT_NE(mapped.mapped(), nullptr);
    const TransferOptions external{.owner = Owner::kExternal};
    ASSERT_THAT(transfers_->Upload(mapped, Bytes(0), data.data(), KiB(256), external), IsOk());
    EXPECT_EQ(Held().leased_blocks, 3u);
    std::string read(data.size(), '\0');
    ASSERT_THAT(transfers_->Download(mapped, Bytes(0), read.data(), KiB(256), external), IsOk());
    EXPECT_TRUE(read == data);
    // Reading what is not cached takes the device.
    EXPECT_EQ(Held().leased_blocks, lease == &visible ? 6u : 3u);
    ASSERT_THAT(transfers_->ReleaseStaging(), IsOk());
  }
}

// Names the arrangement.
std::string QueuesName(const testing::TestParamInfo<const char*>& queues) {
  static constexpr const char* kNames[] = {"OneQueue", "AFamilyForTransfers",
                                           "ASecondQueueForTransfers"};
  return kNames[queues.index];
}

INSTANTIATE_TEST_SUITE_P(Queues, TransfersTest,
                         testing::Values(kOneQueue,
                                         "  queueFamily compute|transfer\n"
                                         "  queueFamily transfer\n",
                                         "  queueFamily compute|transfer 2\n"),
                         QueuesName);

}  // namespace
}  // namespace heapbroker
