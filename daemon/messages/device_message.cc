// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/messages/device_message.h"

#include "common/base/text.h"

namespace heapbroker {
namespace {

v1::DeviceType TypeMessage(DeviceType type) {
  switch (type) {
    case DeviceType::kIntegratedGpu:
      return v1::DEVICE_TYPE_INTEGRATED_GPU;
    case DeviceType::kDiscreteGpu:
      return v1::DEVICE_TYPE_DISCRETE_GPU;
    case DeviceType::kVirtualGpu:
      return v1::DEVICE_TYPE_VIRTUAL_GPU;
    case DeviceType::kCpu:
      return v1::DEVICE_TYPE_CPU;
    case DeviceType::kOther:
      break;
  }
  return v1::DEVICE_TYPE_OTHER;
}

void AddHandleTypes(const HandleTypes& types, google::protobuf::RepeatedField<int>& out) {
  for (HandleType type : {HandleType::kOpaqueFd, HandleType::kDmaBuf}) {
    if (types.has(type)) out.Add(HandleTypeMessage(type));
  }
}

}  // namespace

v1::HandleType HandleTypeMessage(HandleType type) {
  switch (type) {
    case HandleType::kOpaqueFd:
      return v1::HANDLE_TYPE_OPAQUE_FD;
    case HandleType::kDmaBuf:
      return v1::HANDLE_TYPE_DMA_BUF;
  }
  return v1::HANDLE_TYPE_UNSPECIFIED;
}

v1::Device DeviceMessage(const DeviceInfo& device) {
  v1::Device message;
  message.set_index(device.index);
  // Drivers are not held to UTF-8, and a reply that is not would be refused by
  // whoever parses it.
  message.set_name(Printable(device.name, device.name.size()));
  message.set_driver_info(Printable(device.driver_info, device.driver_info.size()));
  message.set_type(TypeMessage(device.type));
  message.set_software(device.software());
  message.set_device_uuid(device.device_uuid.data(), device.device_uuid.size());
  message.set_driver_uuid(device.driver_uuid.data(), device.driver_uuid.size());
  for (const HeapInfo& heap : device.heaps) {
    v1::Heap& out = *message.add_heaps();
    out.set_size(heap.size.count());
    out.set_device_local(heap.device_local);
  }
  for (const MemoryTypeInfo& type : device.memory_types) {
    v1::MemoryType& out = *message.add_memory_types();
    out.set_heap_index(type.heap);
    out.set_property_flags(type.property_flags);
    out.set_exportable(type.exportable.any());
    AddHandleTypes(type.exportable, *out.mutable_handle_types());
  }
  message.set_device_addresses(device.device_addresses);
  AddHandleTypes(device.dedicated_only, *message.mutable_dedicated_only());
  message.set_max_allocation_size(device.max_allocation_size.count());
  return message;
}

}  // namespace heapbroker
