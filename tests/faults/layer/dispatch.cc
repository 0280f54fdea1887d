// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/layer/dispatch.h"

namespace heapbroker::faults {
namespace {

template <typename Function, typename Handle, typename GetProcAddr>
void Find(GetProcAddr next, Handle handle, const char* name, Function& function) {
  if (function == nullptr) function = reinterpret_cast<Function>(next(handle, name));
}

}  // namespace

#define HB_FIND(name) Find(next, handle, "vk" #name, dispatch.name);
#define HB_FIND_PROMOTED(name)                   \
  Find(next, handle, "vk" #name, dispatch.name); \
  Find(next, handle, "vk" #name "KHR", dispatch.name);

InstanceDispatch InstanceDispatch::Load(VkInstance handle, PFN_vkGetInstanceProcAddr next) {
  InstanceDispatch dispatch;
  HB_INSTANCE_FUNCTIONS(HB_FIND)
  HB_PROMOTED_INSTANCE_FUNCTIONS(HB_FIND_PROMOTED)
  dispatch.GetInstanceProcAddr = next;
  return dispatch;
}

DeviceDispatch DeviceDispatch::Load(VkDevice handle, PFN_vkGetDeviceProcAddr next) {
  DeviceDispatch dispatch;
  HB_DEVICE_FUNCTIONS(HB_FIND)
  HB_PROMOTED_DEVICE_FUNCTIONS(HB_FIND_PROMOTED)
  dispatch.GetDeviceProcAddr = next;
  return dispatch;
}

#undef HB_FIND
#undef HB_FIND_PROMOTED

}  // namespace heapbroker::faults
