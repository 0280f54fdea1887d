// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Four digits processes at the same time: one copy of the weights, one answer,
// and that one computed.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/examples/digits/dataset.h"
#include "client/examples/digits/model.h"
#include "heapbroker/v1/stats.grpc.pb.h"
#include "tests/integration/digits/cpu_classifier.h"
#include "tests/integration/digits/digits_runs.h"
#include "tests/integration/digits/sample_files.h"
#include "tests/support/daemon_process.h"
#include "tests/support/process_facts.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_for.h"

namespace digits {
namespace {

using ::heapbroker::DaemonProcess;
using ::heapbroker::Exited;
using ::heapbroker::Process;
using ::heapbroker::ProcessOptions;
using ::testing::HasSubstr;

constexpr int kProcesses = 4;

class SharingTest : public testing::Test {
 protected:
  void SetUp() override {
    auto daemon = DaemonProcess::Start();
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    stats_ = heapbroker::v1::PoolStats::NewStub(
        grpc::CreateChannel(absl::StrCat("unix:", daemon_->runtime_dir(), "/broker.sock"),
                            grpc::InsecureChannelCredentials()));
  }

  // Each holds its result and its memory.
  std::vector<Process> Start(const std::vector<std::string>& flags = {}) {
    auto processes = StartHolding(DigitsCommand(daemon_->runtime_dir(), flags), kProcesses);
    EXPECT_TRUE(processes.ok()) << processes.status() << "\n" << daemon_->Log();
    return processes.ok() ? *std::move(processes) : std::vector<Process>();
  }

  // Of the one device.
  heapbroker::v1::DeviceStats DeviceStats() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    heapbroker::v1::GetStatsResponse response;
    const grpc::Status status = stats_->GetStats(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.devices_size(), 1);
    return response.devices_size() == 1 ? response.devices(0) : heapbroker::v1::DeviceStats();
  }

  heapbroker::v1::ListSegmentsResponse Segments() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    heapbroker::v1::ListSegmentsResponse response;
    const grpc::Status status = stats_->ListSegments(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  std::unique_ptr<DaemonProcess> daemon_;
  std::unique_ptr<heapbroker::v1::PoolStats::Stub> stats_;
};

uint64_t WeightsSize() {
  const absl::StatusOr<Model> model = Model::Open(ModelPath());
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? model->weights_size() : 0;
}

// Memory files that a process maps: size by inode.
std::map<uint64_t, heapbroker::Bytes> MemoryFiles(pid_t pid) {
  std::map<uint64_t, heapbroker::Bytes> files;
  const auto mappings = heapbroker::FileMappings(pid);
  EXPECT_TRUE(mappings.ok()) << mappings.status();
  if (!mappings.ok()) return files;
  for (const heapbroker::FileMapping& mapping : *mappings) {
    if (absl::StartsWith(mapping.path, "/memfd:")) files[mapping.inode] += mapping.size;
  }
  return files;
}

TEST_F(SharingTest, OneProcessLoadsTheWeightsAndAllGiveTheRightAnswer) {
  std::vector<Process> processes = Start();
  int loaded = 0;
  for (Process& process : processes) {
    EXPECT_THAT(process.Output(), HasSubstr("\n963 of 1000 correct\n"));
    loaded += absl::StrContains(process.Output(), "ms  loaded");
    process.CloseInput();
    const auto status = process.Wait(kRunLimit);
    ASSERT_TRUE(status.ok()) << status.status();
    EXPECT_EQ(*status, Exited(0)) << process.ErrorOutput();
    EXPECT_EQ(process.ErrorOutput(), "");
  }
  EXPECT_EQ(processes.size(), size_t{kProcesses});
  EXPECT_EQ(loaded, 1);
}

TEST_F(SharingTest, TheAnswerIsComputedFromTheWeightsInTheFile) {
  const heapbroker::TempDir dir;
  const std::string path = dir.File("zeroed.safetensors");
  WriteFile(path, ModelWithZeroedRow(3));
  const absl::StatusOr<Dataset> dataset = LoadDataset(ImagesPath(), LabelsPath());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const absl::StatusOr<uint32_t> expected = CountCorrectOnCpu(path, *dataset);
  ASSERT_TRUE(expected.ok()) << expected.status();
  ASSERT_NE(*expected, 963u);

  const std::vector<Process> processes = Start({"--model", path});
  EXPECT_EQ(processes.size(), size_t{kProcesses});
  for (const Process& process : processes) {
    EXPECT_THAT(process.Output(), HasSubstr(absl::StrCat("\n", *expected, " of 1000 correct\n")));
  }
}

TEST_F(SharingTest, AllProcessesMapOneCopyOfTheWeights) {
  const std::vector<Process> processes = Start();
  ASSERT_EQ(processes.size(), size_t{kProcesses});
  std::map<uint64_t, int> mapped_by;  // Processes by inode.
  for (const Process& process : processes) {
    for (const auto& [inode, size] : MemoryFiles(process.pid())) {
      ++mapped_by[inode];
    }
  }
  std::vector<uint64_t> shared;
  for (const auto& [inode, count] : mapped_by) {
    EXPECT_TRUE(count == 1 || count == kProcesses) << "inode " << inode << ", " << count;
    if (count == kProcesses) shared.push_back(inode);
  }
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_GE(MemoryFiles(processes[0].pid())[shared[0]], heapbroker::Bytes(WeightsSize()));
  // And all else is each one's own.
  EXPECT_GT(mapped_by.size(), size_t{kProcesses});
}

TEST_F(SharingTest, TheStatisticsCountTheWeightsOnce) {
  std::vector<Process> processes = Start();
  ASSERT_EQ(processes.size(), size_t{kProcesses});
  const uint64_t weights = WeightsSize();
  const heapbroker::v1::DeviceStats held = DeviceStats();
  EXPECT_EQ(held.segments(), 1u);
  EXPECT_GE(held.segment_bytes(), weights);
  EXPECT_LT(held.segment_bytes(), 2 * weights);

  const heapbroker::v1::ListSegmentsResponse segments = Segments();
  ASSERT_EQ(segments.segments_size(), 1);
  EXPECT_EQ(segments.segments(0).size(), weights);
  EXPECT_EQ(segments.segments(0).attached_sessions(), static_cast<uint32_t>(kProcesses));
  EXPECT_EQ(segments.segments(0).state(), heapbroker::v1::SegmentInfo::STATE_SEALED);

  for (Process& process : processes) process.CloseInput();
  for (Process& process : processes) {
    const auto status = process.Wait(kRunLimit);
    ASSERT_TRUE(status.ok()) << status.status();
  }
  // Nobody holds it any more, and it waits for the next who does.
  EXPECT_TRUE(heapbroker::WaitFor([&] {
    const heapbroker::v1::ListSegmentsResponse left = Segments();
    return left.segments_size() == 1 &&
           left.segments(0).state() == heapbroker::v1::SegmentInfo::STATE_UNUSED;
  }));
}

}  // namespace
}  // namespace digits
