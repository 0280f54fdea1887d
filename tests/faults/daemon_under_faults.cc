// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/daemon_under_faults.h"

#include <utility>

#include "common/base/status_macros.h"

namespace heapbroker {

void DaemonUnderFaults::StartDaemonUnder(absl::string_view plan,
                                         const std::vector<std::string>& flags) {
  daemon_file_ = std::make_unique<FaultFile>(plan);
  DaemonOptions options;
  options.flags = flags;
  options.environment = daemon_file_->Environment();
  StartDaemonWith(std::move(options));
}

void DaemonUnderFaults::ConnectUnder(absl::string_view plan) {
  client_file_ = std::make_unique<FaultFile>(plan);
  client_faults_ = std::make_unique<ScopedFaults>(*client_file_);
  Connect();
}

void DaemonUnderFaults::Connect() {
  ClientOptions options;
  options.runtime_dir = runtime_dir();
  // Sanitizers and a busy machine make everything slow.
  options.call_timeout = absl::Seconds(20);
  ASSERT_OK_AND_ASSIGN(client_, Client::Connect(options));
}

void DaemonUnderFaults::TearDown() {
  importer_.reset();
  device_.reset();
  client_.reset();
  if (client_file_ != nullptr) {
    // A client that never imported has made no instance, and so no report.
    const absl::StatusOr<faults::Report> report = client_file_->Report();
    if (report.ok()) EXPECT_EQ(client_file_->Violations(), "");
  }
  if (daemon_ == nullptr) return;
  const absl::StatusOr<ExitStatus> end = daemon_->Stop();
  ASSERT_THAT(end, IsOk());
  EXPECT_EQ(*end, Exited(0));
  if (daemon_file_ == nullptr) return;
  EXPECT_EQ(daemon_file_->Violations(), "");
  const absl::StatusOr<faults::Report> report = daemon_file_->Report();
  ASSERT_THAT(report, IsOk());
  for (const auto& [name, device] : report->devices) {
    EXPECT_EQ(device.live_allocations, 0u) << name;
    EXPECT_EQ(device.live_devices, 0u) << name;
  }
}

absl::StatusOr<Lease> DaemonUnderFaults::Allocate(Bytes size, MemoryKind kind) {
  AllocationRequest request;
  request.size = size;
  request.memory = kind;
  // Refusals are to come at once.
  return client_->Allocate(request, {.max_wait = absl::ZeroDuration()});
}

absl::StatusOr<DeviceBuffer> DaemonUnderFaults::Import(const Lease& lease) {
  HB_ASSIGN_OR_RETURN(VulkanImporter* const importer, Importer());
  return importer->Import(*lease.block(), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
}

absl::StatusOr<VulkanImporter*> DaemonUnderFaults::Importer() {
  if (importer_ == nullptr) {
    HB_ASSIGN_OR_RETURN(device_, MinimalDevice::Create(client_->devices().at(0)));
    HB_ASSIGN_OR_RETURN(importer_, VulkanImporter::Create(device_->context()));
  }
  return importer_.get();
}

}  // namespace heapbroker
