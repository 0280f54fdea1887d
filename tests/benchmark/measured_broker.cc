// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/measured_broker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/transport/session_keeper.h"
#include "common/base/status_macros.h"
#include "common/grpc/status.h"
#include "tests/benchmark/direct_vulkan.h"

namespace heapbroker {
namespace {

constexpr VkBufferUsageFlags kUsage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
constexpr absl::Duration kTimeout = absl::Seconds(5);

absl::Status FetchAll(const std::vector<Lease>& leases) {
  std::vector<const MemoryBlock*> blocks;
  for (const Lease& lease : leases) blocks.push_back(lease.block().get());
  return MemoryBlock::FetchAll(blocks);
}

}  // namespace

v1::AllocateRequest MeasuredRequest() {
  v1::AllocateRequest request;
  request.add_blocks()->set_size(kMeasuredBlockSize.count());
  request.mutable_blocks(0)->set_kind(v1::MEMORY_KIND_DEVICE_LOCAL);
  return request;
}

absl::StatusOr<std::unique_ptr<MeasuredBroker>> MeasuredBroker::Start() {
  std::unique_ptr<MeasuredBroker> broker(new MeasuredBroker());
  HB_ASSIGN_OR_RETURN(broker->daemon_, DaemonProcess::Start());
  HB_RETURN_IF_ERROR(broker->Connect());
  return broker;
}

absl::Status MeasuredBroker::Connect() {
  const ClientOptions options{.name = "broker_benchmark", .runtime_dir = daemon_->runtime_dir()};
  HB_ASSIGN_OR_RETURN(const std::shared_ptr<SessionKeeper> keeper,
                      SessionKeeper::Connect(options, CallLimits(kTimeout)));
  client_ = std::make_unique<Client>(keeper);
  HB_ASSIGN_OR_RETURN(connection_, keeper->Current());
  memory_ = v1::MemoryBroker::NewStub(connection_->channel());
  stats_ = v1::PoolStats::NewStub(connection_->channel());
  health_ = grpc::health::v1::Health::NewStub(connection_->channel());
  HB_ASSIGN_OR_RETURN(device_, MinimalDevice::Create(client_->devices().front()));
  HB_ASSIGN_OR_RETURN(importer_, VulkanImporter::Create(device_->context()));
  HB_ASSIGN_OR_RETURN(held_, client_->Allocate({.size = kMeasuredBlockSize}));
  HB_ASSIGN_OR_RETURN(reader_, Client::Connect(options));
  return absl::OkStatus();
}

absl::StatusOr<v1::AllocateResponse> MeasuredBroker::Allocate(v1::MemoryBroker::Stub& stub) {
  grpc::ClientContext context;
  connection_->Prepare(context, kTimeout);
  v1::AllocateResponse response;
  HB_RETURN_IF_ERROR(FromGrpcStatus(stub.Allocate(&context, MeasuredRequest(), &response)));
  if (response.blocks_size() != 1) return absl::InternalError("not one block was granted");
  return response;
}

absl::Status MeasuredBroker::Release(uint64_t block_id) {
  grpc::ClientContext context;
  connection_->Prepare(context, kTimeout);
  v1::ReleaseRequest request;
  request.add_block_ids(block_id);
  v1::ReleaseResponse response;
  return FromGrpcStatus(memory_->Release(&context, request, &response));
}

Case MeasuredBroker::AllocateAlone() {
  return {"Allocate, from the cache", [this]() -> absl::StatusOr<absl::Duration> {
            absl::StatusOr<v1::AllocateResponse> response;
            const absl::StatusOr<absl::Duration> took = TimeOf([&] {
              response = Allocate(*memory_);
              return response.status();
            });
            HB_RETURN_IF_ERROR(took.status());
            HB_RETURN_IF_ERROR(Release(response->blocks(0).block_id()));
            return took;
          }};
}

Case MeasuredBroker::ReleaseAlone() {
  return {"Release, to the cache", [this]() -> absl::StatusOr<absl::Duration> {
            HB_ASSIGN_OR_RETURN(const v1::AllocateResponse response, Allocate(*memory_));
            return TimeOf([&] { return Release(response.blocks(0).block_id()); });
          }};
}

Case MeasuredBroker::HealthCheck() {
  return {"Health.Check of the daemon", [this] {
            return TimeOf([&] {
              grpc::ClientContext context;
              connection_->Prepare(context, kTimeout);
              grpc::health::v1::HealthCheckResponse response;
              return FromGrpcStatus(health_->Check(&context, {}, &response));
            });
          }};
}

Case MeasuredBroker::FetchAlone() {
  return {"Fetch of a descriptor", [this] {
            return TimeOf([&] {
              return connection_->Fetch({held_.facts().block_id}, CallLimits(kTimeout)).status();
            });
          }};
}

Case MeasuredBroker::ImportAlone() {
  // With a descriptor that is there; each import ends before the next.
  return {"import of a fetched block", [this] {
            return TimeOf([&] { return importer_->Import(*held_.block(), kUsage).status(); });
          }};
}

Case MeasuredBroker::LeaseAndReturn() {
  return {"lease: Allocate + Release", [this] {
            return TimeOf([&]() -> absl::Status {
              HB_ASSIGN_OR_RETURN(Lease lease, client_->Allocate({.size = kMeasuredBlockSize}));
              return lease.Release();
            });
          }};
}

Case MeasuredBroker::LeaseImportAndReturn() {
  return {"lease: Allocate + Fetch + import + Release", [this] {
            return TimeOf([&]() -> absl::Status {
              HB_ASSIGN_OR_RETURN(Lease lease, client_->Allocate({.size = kMeasuredBlockSize}));
              // The buffer ends here, and with it the import.
              HB_RETURN_IF_ERROR(importer_->Import(*lease.block(), kUsage).status());
              return lease.Release();
            });
          }};
}

Case MeasuredBroker::LeasePlan() {
  return {absl::StrCat("plan of ", kArenas, " arenas: leased and imported"),
          [this]() -> absl::StatusOr<absl::Duration> {
            std::vector<Lease> leases;
            std::vector<DeviceBuffer> buffers;
            const std::vector<AllocationRequest> requests(kArenas, {.size = kMeasuredBlockSize});
            const absl::StatusOr<absl::Duration> took = TimeOf([&]() -> absl::Status {
              HB_ASSIGN_OR_RETURN(leases, client_->AllocateAll(requests));
              HB_RETURN_IF_ERROR(FetchAll(leases));
              for (const Lease& lease : leases) {
                HB_ASSIGN_OR_RETURN(DeviceBuffer buffer, importer_->Import(*lease.block(), kUsage));
                buffers.push_back(std::move(buffer));
              }
              return absl::OkStatus();
            });
            buffers.clear();
            HB_RETURN_IF_ERROR(ReleaseAll(std::move(leases)));
            return took;
          }};
}

absl::StatusOr<Case> MeasuredBroker::AttachToSegment(Bytes size) {
  const std::string name = absl::StrCat("attach to a sealed segment, ", FormatBytes(size));
  HB_ASSIGN_OR_RETURN(
      Segment segment,
      client_->OpenSegment({.name = name, .size = size, .max_wait = absl::ZeroDuration()}));
  // Nobody looks at what is in it.
  HB_RETURN_IF_ERROR(segment.Seal({}));
  sealed_.push_back(std::move(segment));
  return Case{name, [this, name]() -> absl::StatusOr<absl::Duration> {
                Segment attached;
                std::vector<DeviceBuffer> buffers;
                const absl::StatusOr<absl::Duration> took = TimeOf([&]() -> absl::Status {
                  HB_ASSIGN_OR_RETURN(
                      attached,
                      reader_->OpenSegment({.name = name, .mode = SegmentOptions::Mode::kAttach}));
                  for (const auto& block : attached.blocks()) {
                    HB_ASSIGN_OR_RETURN(DeviceBuffer buffer, importer_->Import(*block, kUsage));
                    buffers.push_back(std::move(buffer));
                  }
                  return absl::OkStatus();
                });
                buffers.clear();
                HB_RETURN_IF_ERROR(attached.Close());
                return took;
              }};
}

Case MeasuredBroker::DirectAllocation() {
  return {"vkAllocateMemory + export + free, no daemon", [this] {
            return TimeOf([&] { return AllocateExportFree(device_->context(), held_.facts()); });
          }};
}

absl::StatusOr<uint64_t> MeasuredBroker::CacheMisses() {
  grpc::ClientContext context;
  connection_->Prepare(context, kTimeout);
  v1::GetStatsResponse response;
  HB_RETURN_IF_ERROR(FromGrpcStatus(stats_->GetStats(&context, {}, &response)));
  uint64_t misses = 0;
  for (const v1::DeviceStats& device : response.devices()) {
    for (const v1::PoolStatsRow& pool : device.pools()) misses += pool.misses();
  }
  return misses;
}

}  // namespace heapbroker
