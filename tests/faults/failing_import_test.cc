// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Imports that fail in the driver: whichever way it treats the descriptor, the
// client library neither leaks it nor closes somebody else's.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "gmock/gmock.h"
#include "tests/faults/daemon_under_faults.h"
#include "tests/support/process_facts.h"

namespace heapbroker {
namespace {

using absl::StatusCode;

// Another part of the program, which opens and closes descriptors of its own all
// the time, and notices when one of them was closed by somebody else.
class Bystander {
 public:
  Bystander() : thread_([this] { Run(); }) {}
  ~Bystander() { Stop(); }
  Bystander(const Bystander&) = delete;
  Bystander& operator=(const Bystander&) = delete;

  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  int lost() const { return lost_; }
  int rounds() const { return rounds_; }

 private:
  void Run() {
    struct stat null_device {};
    ASSERT_EQ(stat("/dev/null", &null_device), 0);
    while (!stop_) {
      const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
      std::this_thread::yield();
      struct stat now {};
      const bool mine = fstat(fd, &now) == 0 && now.st_rdev == null_device.st_rdev;
      if (!mine) ++lost_;
      if (mine) close(fd);
      ++rounds_;
    }
  }

  std::atomic<bool> stop_ = false;
  std::atomic<int> lost_ = 0;
  std::atomic<int> rounds_ = 0;
  std::thread thread_;  // Last: it uses all of the others.
};

class FailingImportTest : public DaemonUnderFaults,
                          public testing::WithParamInterface<const char*> {};

TEST_P(FailingImportTest, CostsNoDescriptorAndNobodyElsesDescriptor) {
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(""));
  ASSERT_NO_FATAL_FAILURE(ConnectUnder(absl::StrCat("fault import:*:", GetParam(), "\n")));
  ASSERT_OK_AND_ASSIGN(const Lease lease, Allocate(KiB(64)));
  ASSERT_OK_AND_ASSIGN(VulkanImporter* const importer, Importer());
  ASSERT_THAT(lease.fd(), IsOk());
  ASSERT_OK_AND_ASSIGN(const size_t before, OpenDescriptorCount(getpid()));

  Bystander bystander;
  uint64_t failures = 0;
  // However busy the machine is, the bystander has its turns.
  for (; failures < 1000 || bystander.rounds() < 1000; ++failures) {
    const absl::Status failed = Import(lease).status();
    ASSERT_THAT(failed, StatusIs(StatusCode::kInternal, "VK_ERROR_INVALID_EXTERNAL_HANDLE"));
  }
  bystander.Stop();
  EXPECT_EQ(bystander.lost(), 0);
  EXPECT_EQ(client_file().Device("default").faults, failures);
  EXPECT_EQ(importer->stats().failed_imports, failures);
  EXPECT_EQ(importer->stats().leaked_descriptors, 0u);
  EXPECT_EQ(importer->stats().imports, 0u);
  EXPECT_EQ(OpenDescriptorCount(getpid()).value_or(0), before);
  // The descriptor that was lent out is still the block's.
  client_file().Write("");
  EXPECT_THAT(Import(lease), IsOk());
}

class HangingImportTest : public DaemonUnderFaults {};

TEST_F(HangingImportTest, OthersWaitForItNoLongerThanTheySaid) {
  ASSERT_NO_FATAL_FAILURE(StartDaemonUnder(""));
  ASSERT_NO_FATAL_FAILURE(ConnectUnder("fault import:1:delay(3s)\n"));
  ASSERT_OK_AND_ASSIGN(const Lease slow, Allocate(KiB(64)));
  ASSERT_OK_AND_ASSIGN(const Lease other, Allocate(KiB(64)));
  ASSERT_OK_AND_ASSIGN(VulkanImporter* const importer, Importer());
  ASSERT_THAT(slow.fd(), IsOk());
  ASSERT_THAT(other.fd(), IsOk());
  std::thread importing([&] { EXPECT_THAT(Import(slow), IsOk()); });
  EXPECT_TRUE(WaitFor(
      [&] { return client_file().Device("default").CallsOf(faults::Function::kImport) == 1; }));
  // The same block, and another one.
  for (const Lease* const lease : {&slow, &other}) {
    const auto import = [&](const CallOptions& call) {
      return importer->Import(*lease->block(), VK_BUFFER_USAGE_TRANSFER_DST_BIT, call).status();
    };
    EXPECT_THAT(import({.timeout = absl::Milliseconds(50)}),
                StatusIs(StatusCode::kDeadlineExceeded, ""));
    const auto cancellation = std::make_shared<Cancellation>();
    std::thread canceller([&] { cancellation->Cancel(); });
    EXPECT_THAT(import({.timeout = absl::InfiniteDuration(), .cancellation = cancellation}),
                StatusIs(StatusCode::kCancelled, ""));
    canceller.join();
  }
  importing.join();
  EXPECT_THAT(Import(other), IsOk());
}

INSTANTIATE_TEST_SUITE_P(Drivers, FailingImportTest,
                         testing::Values("fail-and-close", "fail-and-keep"),
                         [](const auto& driver) {
                           return std::string(driver.param) == "fail-and-close" ? "ThatClose"
                                                                                : "ThatKeep";
                         });

}  // namespace
}  // namespace heapbroker
