// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/layer/objects.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace heapbroker::faults {
namespace {

// Both tables are keyed by the loader's first word.
template <typename Object>
class Table {
 public:
  Object& Find(const void* handle) {
    MutexLock lock(mutex_);
    return *objects_.at(Key(handle));
  }
  void Add(const void* handle, std::unique_ptr<Object> object) {
    MutexLock lock(mutex_);
    objects_[Key(handle)] = std::move(object);
  }
  std::unique_ptr<Object> Take(const void* handle) {
    MutexLock lock(mutex_);
    auto taken = objects_.extract(Key(handle));
    return std::move(taken.mapped());
  }

 private:
  static const void* Key(const void* handle) { return *static_cast<void* const*>(handle); }

  Mutex mutex_;
  std::map<const void*, std::unique_ptr<Object>> objects_ ABSL_GUARDED_BY(mutex_);
};

// Never destroyed: the process may end while another thread is in a call.
Table<Instance>& Instances() {
  static auto* const table = new Table<Instance>;
  return *table;
}
Table<Device>& Devices() {
  static auto* const table = new Table<Device>;
  return *table;
}

uint64_t Changed(uint64_t value, int64_t change) { return value + static_cast<uint64_t>(change); }

}  // namespace

Instance& InstanceOf(VkInstance instance) { return Instances().Find(instance); }
Device& DeviceOf(VkDevice device) { return Devices().Find(device); }
Device& DeviceOf(VkQueue queue) { return Devices().Find(queue); }
Device& DeviceOf(VkCommandBuffer commands) { return Devices().Find(commands); }

void AddInstance(std::unique_ptr<Instance> instance) {
  const VkInstance handle = instance->handle;
  Instances().Add(handle, std::move(instance));
}
void AddDevice(std::unique_ptr<Device> device) {
  const VkDevice handle = device->handle();
  Devices().Add(handle, std::move(device));
}
std::unique_ptr<Instance> TakeInstance(VkInstance instance) { return Instances().Take(instance); }
std::unique_ptr<Device> TakeDevice(VkDevice device) { return Devices().Take(device); }

Device::Device(VkDevice handle, const PhysicalDevice& physical_device,
               const DeviceDispatch& dispatch, const VkPhysicalDeviceMemoryProperties& memory)
    : handle_(handle),
      plan_(*physical_device.plan),
      faults_(*physical_device.instance->faults),
      next_(dispatch),
      ledger_(plan_, memory) {
  faults_.Count(plan_, [](DeviceCounters& counters) { ++counters.live_devices; });
  if (plan_.queue_families.empty()) return;
  VkQueue real = VK_NULL_HANDLE;
  next_.GetDeviceQueue(handle_, 0, 0, &real);
  // As the loader does with what it hands out: by this a layer below finds the device.
  *reinterpret_cast<void**>(real) = *reinterpret_cast<void**>(handle_);
  for (const QueueFamilyPlan& family : plan_.queue_families) {
    queues_.emplace_back();
    for (uint32_t i = 0; i < family.queues; ++i) {
      queues_.back().push_back(std::make_unique<Queue>());
      queues_.back().back()->real = real;
    }
  }
}

Queue* Device::QueueOf(uint32_t family, uint32_t index) {
  if (family >= queues_.size() || index >= queues_[family].size()) return nullptr;
  return queues_[family][index].get();
}

VkResult Device::OnQueue(VkQueue queue, absl::FunctionRef<VkResult(VkQueue real)> call) {
  if (queues_.empty()) return call(queue);
  MutexLock lock(queue_mutex_);
  return call(reinterpret_cast<Queue*>(queue)->real);
}

std::optional<VkResult> Device::Ask(
    absl::FunctionRef<std::optional<Refusal>(MemoryLedger& ledger)> question) {
  std::optional<Refusal> refusal;
  {
    MutexLock lock(mutex_);
    refusal = question(ledger_);
  }
  if (!refusal) return std::nullopt;
  if (!refusal->violation.empty()) {
    faults_.ReportViolation(absl::StrCat(refusal->violation, " (device ", plan_.name, ")"));
  }
  return refusal->result;
}

void Device::EndAllocation(const AllocationRequest& request, VkDeviceMemory memory) {
  {
    MutexLock lock(mutex_);
    ledger_.Add(request, memory);
  }
  CountMemory(request.type, 1, static_cast<int64_t>(request.size));
}

void Device::CancelAllocation(const AllocationRequest& request) {
  MutexLock lock(mutex_);
  ledger_.Cancel(request);
}

std::optional<LiveMemory> Device::BeginFree(VkDeviceMemory memory) {
  std::optional<LiveMemory> live;
  {
    MutexLock lock(mutex_);
    live = ledger_.BeginFree(memory);
  }
  if (!live) faults_.ReportViolation("vkFreeMemory of memory that is not alive");
  return live;
}

void Device::EndFree(const LiveMemory& memory) {
  {
    MutexLock lock(mutex_);
    ledger_.End(memory);
  }
  CountMemory(memory.type, -1, -static_cast<int64_t>(memory.size));
}

void Device::CountMemory(uint32_t type, int64_t count, int64_t bytes) {
  uint32_t heap = 0;
  {
    MutexLock lock(mutex_);
    heap = ledger_.HeapOf(type);
  }
  faults_.Count(plan_, [&](DeviceCounters& counters) {
    counters.live_allocations = Changed(counters.live_allocations, count);
    counters.live_bytes = Changed(counters.live_bytes, bytes);
    uint64_t& heap_bytes = counters.live_heap_bytes[heap];
    heap_bytes = Changed(heap_bytes, bytes);
    counters.peak_allocations = std::max(counters.peak_allocations, counters.live_allocations);
    counters.peak_bytes = std::max(counters.peak_bytes, counters.live_bytes);
  });
}

void Device::CountExport() {
  faults_.Count(plan_, [](DeviceCounters& counters) { ++counters.exported_descriptors; });
}

void Device::CountObject(Kind kind, int64_t change) {
  objects_[static_cast<size_t>(kind)] += change;
  static constexpr uint64_t DeviceCounters::*kCounters[] = {&DeviceCounters::live_buffers,
                                                            &DeviceCounters::live_fences,
                                                            &DeviceCounters::live_command_pools};
  faults_.Count(plan_, [&](DeviceCounters& counters) {
    uint64_t& counter = counters.*kCounters[static_cast<size_t>(kind)];
    counter = Changed(counter, change);
  });
}

void Device::End() {
  std::vector<std::string> left;
  const auto add = [&](const char* what, int64_t count) {
    if (count != 0) left.push_back(absl::StrCat(what, ": ", count));
  };
  {
    MutexLock lock(mutex_);
    add("allocations", static_cast<int64_t>(ledger_.count()));
    add("bytes", static_cast<int64_t>(ledger_.bytes()));
  }
  add("buffers", objects_[static_cast<size_t>(Kind::kBuffer)]);
  add("fences", objects_[static_cast<size_t>(Kind::kFence)]);
  add("command pools", objects_[static_cast<size_t>(Kind::kCommandPool)]);
  if (!left.empty()) {
    faults_.ReportViolation(absl::StrCat("vkDestroyDevice of device ", plan_.name,
                                         " leaves alive: ", absl::StrJoin(left, ", ")));
  }
  faults_.Count(plan_, [](DeviceCounters& counters) { --counters.live_devices; });
}

}  // namespace heapbroker::faults
