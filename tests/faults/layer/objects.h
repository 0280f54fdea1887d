// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the layer keeps for instances, physical devices and devices.
#ifndef TESTS_FAULTS_LAYER_OBJECTS_H_
#define TESTS_FAULTS_LAYER_OBJECTS_H_

#include <vulkan/vulkan.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "common/base/mutex.h"
#include "tests/faults/layer/dispatch.h"
#include "tests/faults/layer/fault_state.h"
#include "tests/faults/plan/memory_ledger.h"

namespace heapbroker::faults {

struct Instance;

// Stands where callers see a VkPhysicalDevice: one of the driver's devices may be
// shown as several. The loader and other layers read the first word of such a
// handle, so it is the one of the driver's handle; nothing below this layer may
// ever see the object.
struct PhysicalDevice {
  void* loader_data = nullptr;
  VkPhysicalDevice real = VK_NULL_HANDLE;
  Instance* instance = nullptr;
  const DevicePlan* plan = nullptr;

  VkPhysicalDevice handle() { return reinterpret_cast<VkPhysicalDevice>(this); }
};
inline PhysicalDevice& Unwrap(VkPhysicalDevice handle) {
  return *reinterpret_cast<PhysicalDevice*>(handle);
}

// Stands where callers see the VkQueue of a planned family: the driver has one for all
// of them. As PhysicalDevice; the loader writes the first word.
struct Queue {
  void* loader_data = nullptr;
  VkQueue real = VK_NULL_HANDLE;

  VkQueue handle() { return reinterpret_cast<VkQueue>(this); }
};

struct Instance {
  VkInstance handle = VK_NULL_HANDLE;
  InstanceDispatch next;
  FaultState* faults = nullptr;
  Mutex mutex;
  // Made by the first enumeration; the same objects ever after.
  std::vector<std::unique_ptr<PhysicalDevice>> devices ABSL_GUARDED_BY(mutex);
};

// One VkDevice. Thread-safe; no lock is held over a call of the driver, except for the
// one that keeps planned queues apart.
class Device {
 public:
  Device(VkDevice handle, const PhysicalDevice& physical_device, const DeviceDispatch& dispatch,
         const VkPhysicalDeviceMemoryProperties& memory);

  VkDevice handle() const { return handle_; }
  const DevicePlan& plan() const { return plan_; }
  const DeviceDispatch& next() const { return next_; }

  // Of a planned family; null where the plan has none like it.
  Queue* QueueOf(uint32_t family, uint32_t index);
  bool has_planned_queues() const { return !queues_.empty(); }
  // The driver's, with which `call` is called: by one thread at a time where it is
  // behind several.
  VkResult OnQueue(VkQueue queue, absl::FunctionRef<VkResult(VkQueue real)> call);
  // The driver's family; those that are no family of the device stay as they are.
  uint32_t RealFamily(uint32_t family) const {
    return family < plan_.queue_families.size() ? 0 : family;
  }

  // As FaultState's.
  std::optional<Broken> OnCall(Function function) { return faults_.OnCall(function, &plan_); }

  // What the ledger says to a call, as what to return instead of asking the driver;
  // a violation has been reported. Unset where the driver may be asked.
  std::optional<VkResult> Ask(
      absl::FunctionRef<std::optional<Refusal>(MemoryLedger& ledger)> question);

  // After the ledger's Begin: what the driver said.
  void EndAllocation(const AllocationRequest& request, VkDeviceMemory memory);
  void CancelAllocation(const AllocationRequest& request);
  // Unset: the driver must not see it.
  std::optional<LiveMemory> BeginFree(VkDeviceMemory memory);
  void EndFree(const LiveMemory& memory);

  void CountExport();
  // One more, or one less, of buffers, fences or command pools.
  enum class Kind { kBuffer, kFence, kCommandPool };
  void CountObject(Kind kind, int64_t change);

  // Reports what is still alive.
  void End();

 private:
  void CountMemory(uint32_t type, int64_t count, int64_t bytes);

  const VkDevice handle_;
  const DevicePlan& plan_;
  FaultState& faults_;
  const DeviceDispatch next_;
  // By family; constant. Empty: the driver's.
  std::vector<std::vector<std::unique_ptr<Queue>>> queues_;
  Mutex queue_mutex_;                     // Whose turn it is to use the driver's one.
  std::atomic<int64_t> objects_[3] = {};  // By Kind.
  Mutex mutex_;
  MemoryLedger ledger_ ABSL_GUARDED_BY(mutex_);
};

// Found by any handle that was made from them: they share the loader's first word.
// The handle must be alive.
Instance& InstanceOf(VkInstance instance);
Device& DeviceOf(VkDevice device);
Device& DeviceOf(VkQueue queue);
Device& DeviceOf(VkCommandBuffer commands);

void AddInstance(std::unique_ptr<Instance> instance);
void AddDevice(std::unique_ptr<Device> device);
// Out of the tables; the caller destroys them.
std::unique_ptr<Instance> TakeInstance(VkInstance instance);
std::unique_ptr<Device> TakeDevice(VkDevice device);

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_LAYER_OBJECTS_H_
