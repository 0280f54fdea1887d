// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/header_message.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"

namespace heapbroker {
namespace {

// VK_MAX_MEMORY_HEAPS and VK_MAX_MEMORY_TYPES.
constexpr int kMostHeaps = 16;
constexpr int kMostMemoryTypes = 32;
constexpr int kMostPools = 4096;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the trace's header: ", what));
}

v1::TraceHeap HeapMessage(const HeapInfo& heap, const HeapLimit& limit) {
  v1::TraceHeap message;
  message.set_size(heap.size.count());
  message.set_device_local(heap.device_local);
  if (heap.driver_budget) message.set_driver_budget(heap.driver_budget->count());
  message.set_limit(limit.bytes.count());
  if (limit.driver_per_mille) message.set_driver_per_mille(*limit.driver_per_mille);
  return message;
}

template <typename Field>
void AddHandleTypes(const HandleTypes& types, Field* field) {
  if (types.opaque_fd) field->Add(v1::HANDLE_TYPE_OPAQUE_FD);
  if (types.dma_buf) field->Add(v1::HANDLE_TYPE_DMA_BUF);
}

template <typename Field>
HandleTypes ParseHandleTypes(const Field& field) {
  HandleTypes types;
  for (const int type : field) {
    types.opaque_fd |= type == v1::HANDLE_TYPE_OPAQUE_FD;
    types.dma_buf |= type == v1::HANDLE_TYPE_DMA_BUF;
  }
  return types;
}

v1::TraceMemoryType MemoryTypeMessage(const MemoryTypeInfo& type) {
  v1::TraceMemoryType message;
  message.set_heap_index(type.heap);
  message.set_property_flags(type.property_flags);
  AddHandleTypes(type.exportable, message.mutable_handle_types());
  message.set_device_local(type.device_local);
  message.set_host_visible(type.host_visible);
  message.set_host_coherent(type.host_coherent);
  message.set_host_cached(type.host_cached);
  return message;
}

MemoryTypeInfo ParseMemoryType(const v1::TraceMemoryType& message) {
  MemoryTypeInfo type;
  type.heap = message.heap_index();
  type.property_flags = message.property_flags();
  type.exportable = ParseHandleTypes(message.handle_types());
  type.device_local = message.device_local();
  type.host_visible = message.host_visible();
  type.host_coherent = message.host_coherent();
  type.host_cached = message.host_cached();
  return type;
}

v1::TracePool PoolMessage(const ResolvedPool& pool) {
  v1::TracePool message;
  message.set_name(pool.name);
  message.set_memory_type(pool.memory_type);
  message.set_every_type(pool.every_type);
  message.set_transient(pool.transient);
  message.set_max_allocation_size(pool.limits.max_allocation_size.count());
  message.set_max_allocation_capacity(pool.limits.max_allocation_capacity.count());
  message.set_max_free_allocation_count(pool.limits.max_free_allocation_count);
  return message;
}

ResolvedPool ParsePool(const v1::TracePool& message) {
  ResolvedPool pool;
  pool.name = Printable(message.name());
  pool.memory_type = message.memory_type();
  pool.every_type = message.every_type();
  pool.transient = message.transient();
  pool.limits.max_allocation_size = Bytes(message.max_allocation_size());
  pool.limits.max_allocation_capacity = Bytes(message.max_allocation_capacity());
  pool.limits.max_free_allocation_count = message.max_free_allocation_count();
  return pool;
}

// A duration of no end is the longest that the field can hold, both ways.
int64_t Nanoseconds(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }

v1::TraceDevice DeviceMessage(const TracedDevice& device) {
  const DeviceInfo& info = device.info;
  const AdmissionOptions& admission = device.options.admission;
  v1::TraceDevice message;
  message.set_name(info.name);
  message.set_driver_info(info.driver_info);
  message.set_type(static_cast<v1::DeviceType>(info.type));
  for (size_t i = 0; i < info.heaps.size(); ++i) {
    *message.add_heaps() = HeapMessage(info.heaps[i], admission.heaps[i]);
  }
  for (const MemoryTypeInfo& type : info.memory_types) {
    *message.add_memory_types() = MemoryTypeMessage(type);
  }
  message.set_max_allocation_size(info.max_allocation_size.count());
  message.set_max_allocation_count(info.max_allocation_count);
  message.set_device_addresses(info.device_addresses);
  AddHandleTypes(info.dedicated_only, message.mutable_dedicated_only());
  for (const ResolvedPool& pool : admission.pools) *message.add_pools() = PoolMessage(pool);
  for (const CountLimit& limit : admission.count_limits) {
    v1::TraceCountLimit* const one = message.add_count_limits();
    one->set_kind(static_cast<uint32_t>(limit.kind));
    one->set_blocks(limit.blocks);
  }
  message.set_exact_matching(admission.matching.matching == Matching::kExact);
  message.set_slack_per_mille(admission.matching.slack_per_mille);
  message.set_idle_ttl(Nanoseconds(admission.idle_ttl));
  message.set_head_timeout(Nanoseconds(admission.head_timeout));
  message.set_give_back_time(Nanoseconds(admission.give_back_time));
  message.set_first_tenant_only(device.options.tenants == TenantRule::kFirstTenantOnly);
  return message;
}

absl::Status CheckDevice(const v1::TraceDevice& message) {
  if (message.heaps().empty() || message.heaps_size() > kMostHeaps) {
    return Wrong(
        absl::StrCat("a device has 1 to ", kMostHeaps, " heaps, not ", message.heaps_size()));
  }
  if (message.memory_types().empty() || message.memory_types_size() > kMostMemoryTypes) {
    return Wrong(absl::StrCat("a device has 1 to ", kMostMemoryTypes, " memory types, not ",
                              message.memory_types_size()));
  }
  for (const v1::TraceMemoryType& type : message.memory_types()) {
    if (type.heap_index() >= static_cast<uint32_t>(message.heaps_size())) {
      return Wrong(absl::StrCat("a memory type is of heap ", type.heap_index(),
                                ", and the device has ", message.heaps_size()));
    }
  }
  if (message.pools_size() > kMostPools) {
    return Wrong(absl::StrCat(message.pools_size(), " pools; at most ", kMostPools));
  }
  for (const v1::TracePool& pool : message.pools()) {
    if (pool.memory_type() >= static_cast<uint32_t>(message.memory_types_size())) {
      return Wrong(absl::StrCat("a pool is of memory type ", pool.memory_type(),
                                ", and the device has ", message.memory_types_size()));
    }
  }
  if (message.count_limits().empty() || message.count_limits_size() > kMostHeaps) {
    return Wrong("a device has at least one limit of the number of blocks, and few");
  }
  for (const v1::TraceCountLimit& limit : message.count_limits()) {
    if (limit.kind() < static_cast<uint32_t>(LimitKind::kMaxAllocationCount) ||
        limit.kind() > static_cast<uint32_t>(LimitKind::kMemoryMaps)) {
      return Wrong(absl::StrCat("a limit of kind ", limit.kind(), "; known are 2 to 4"));
    }
  }
  if (message.max_allocation_size() == 0) return Wrong("max_allocation_size is 0");
  if (message.slack_per_mille() > 1000) {
    return Wrong(absl::StrCat("slack_per_mille is ", message.slack_per_mille(), "; 0 to 1000"));
  }
  if (message.idle_ttl() < 0 || message.head_timeout() < 0 || message.give_back_time() < 0) {
    return Wrong("a time limit is negative");
  }
  return absl::OkStatus();
}

DeviceInfo ParseInfo(const v1::TraceDevice& message, uint32_t index) {
  DeviceInfo info;
  info.index = index;
  info.name = Printable(message.name());
  info.driver_info = Printable(message.driver_info());
  info.type =
      v1::DeviceType_IsValid(message.type()) ? DeviceType(message.type()) : DeviceType::kOther;
  for (const v1::TraceHeap& heap : message.heaps()) {
    HeapInfo& one = info.heaps.emplace_back();
    one.size = Bytes(heap.size());
    one.device_local = heap.device_local();
    if (heap.has_driver_budget()) one.driver_budget = Bytes(heap.driver_budget());
  }
  for (const v1::TraceMemoryType& type : message.memory_types()) {
    info.memory_types.push_back(ParseMemoryType(type));
  }
  info.max_allocation_size = Bytes(message.max_allocation_size());
  info.max_allocation_count = message.max_allocation_count();
  info.device_addresses = message.device_addresses();
  info.dedicated_only = ParseHandleTypes(message.dedicated_only());
  return info;
}

LedgerOptions ParseLedgerOptions(const v1::TraceDevice& message) {
  LedgerOptions options;
  AdmissionOptions& admission = options.admission;
  for (const v1::TraceHeap& heap : message.heaps()) {
    HeapLimit& limit = admission.heaps.emplace_back();
    limit.bytes = Bytes(heap.limit());
    if (heap.has_driver_per_mille()) {
      limit.driver_per_mille = std::min<uint32_t>(heap.driver_per_mille(), 1000);
    }
  }
  for (const v1::TracePool& pool : message.pools()) admission.pools.push_back(ParsePool(pool));
  for (const v1::TraceCountLimit& limit : message.count_limits()) {
    admission.count_limits.push_back({static_cast<LimitKind>(limit.kind()), limit.blocks()});
  }
  admission.matching.matching = message.exact_matching() ? Matching::kExact : Matching::kBestFit;
  admission.matching.slack_per_mille = message.slack_per_mille();
  admission.idle_ttl = absl::Nanoseconds(message.idle_ttl());
  admission.head_timeout = absl::Nanoseconds(message.head_timeout());
  admission.give_back_time = absl::Nanoseconds(message.give_back_time());
  options.tenants =
      message.first_tenant_only() ? TenantRule::kFirstTenantOnly : TenantRule::kAnyTenant;
  return options;
}

}  // namespace

v1::TraceHeader HeaderMessage(const TraceStart& start) {
  v1::TraceHeader message;
  message.set_format(kTraceFormat);
  message.set_daemon_version(start.daemon_version);
  message.set_comment(start.comment);
  const int64_t nanoseconds = absl::ToUnixNanos(start.time);
  message.mutable_start_time()->set_seconds(absl::ToUnixSeconds(start.time));
  message.mutable_start_time()->set_nanos(static_cast<int32_t>(nanoseconds % 1000000000));
  for (const TracedDevice& device : start.devices) *message.add_devices() = DeviceMessage(device);
  return message;
}

absl::StatusOr<TraceStart> ParseHeader(const v1::TraceHeader& message) {
  if (message.format() != kTraceFormat) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the trace is of format ", message.format(), ", and this program reads ", kTraceFormat,
        " only: use the version that recorded it, ", Printable(message.daemon_version())));
  }
  if (message.devices().empty() || message.devices_size() > static_cast<int>(kMaxDevices)) {
    return Wrong(absl::StrCat("1 to ", kMaxDevices, " devices, not ", message.devices_size()));
  }
  // Later than 2262 nanoseconds do not fit 64 bits.
  if (message.start_time().seconds() < 0 || message.start_time().seconds() > 9000000000 ||
      message.start_time().nanos() < 0 || message.start_time().nanos() > 999999999) {
    return Wrong("start_time is out of range");
  }
  TraceStart start;
  start.daemon_version = Printable(message.daemon_version());
  start.comment = Printable(message.comment(), 1000);
  start.time = absl::FromUnixSeconds(message.start_time().seconds()) +
               absl::Nanoseconds(message.start_time().nanos());
  for (const v1::TraceDevice& device : message.devices()) {
    HB_RETURN_IF_ERROR(CheckDevice(device));
    const auto index = static_cast<uint32_t>(start.devices.size());
    start.devices.push_back({ParseInfo(device, index), ParseLedgerOptions(device)});
  }
  return start;
}

}  // namespace heapbroker
