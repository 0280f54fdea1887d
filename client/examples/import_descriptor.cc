// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A brokered block without Vulkan: what an import must be told, and the calls, compiled
// where their header is found. They were never run, which takes the vendor's hardware.
#include <sys/stat.h>

#include <iostream>

#include "absl/strings/escaping.h"
#include "heapbroker/client.h"

using heapbroker::ImportFacts;

// `fd` is a duplicate. CUDA and OpenCL own it after a success; of HIP and Level Zero that
// is not known. The lease must outlive what is made here.
#if __has_include(<hip/hip_runtime_api.h>) && defined(__HIP_PLATFORM_AMD__)
#include <hip/hip_runtime_api.h>
#define CUDA_OR_HIP(name) hip##name
#elif __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#define CUDA_OR_HIP(name) cuda##name
#endif
#ifdef CUDA_OR_HIP  // On the current device.
[[maybe_unused]] static auto ImportIntoCudaOrHip(int fd, const ImportFacts& facts,
                                                 CUDA_OR_HIP(ExternalMemory_t) & memory,
                                                 void*& address) {
  CUDA_OR_HIP(ExternalMemoryHandleDesc) handle = {};
  handle.type = CUDA_OR_HIP(ExternalMemoryHandleTypeOpaqueFd);
  handle.handle.fd = fd;
  handle.size = facts.allocation_size.count();
  handle.flags = facts.dedicated ? 1 : 0;  // cudaExternalMemoryDedicated
  CUDA_OR_HIP(ExternalMemoryBufferDesc) buffer = {};
  buffer.size = facts.size.count();
  const auto result = CUDA_OR_HIP(ImportExternalMemory)(&memory, &handle);
  return result ? result : CUDA_OR_HIP(ExternalMemoryGetMappedBuffer)(&address, memory, &buffer);
}
#endif
#if __has_include(<level_zero/ze_api.h>)
#include <level_zero/ze_api.h>
[[maybe_unused]] static auto ImportIntoLevelZero(int fd, const ImportFacts& facts,
                                                 ze_context_handle_t context,
                                                 ze_device_handle_t device, void*& address) {
  ze_external_memory_import_fd_t handle = {ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD, nullptr,
                                           ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD, fd};
  ze_device_mem_alloc_desc_t memory = {ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, &handle, 0, 0};
  return zeMemAllocDevice(context, &memory, facts.allocation_size.count(), 0, device, &address);
}
#endif
#if __has_include(<CL/cl_ext.h>)
#include <CL/cl_ext.h>
// Each use between clEnqueueAcquireExternalMemObjectsKHR and the like with Release.
[[maybe_unused]] static cl_mem ImportIntoOpenCl(int fd, const ImportFacts& facts,
                                                cl_context context, cl_int& error) {
  const cl_mem_properties handle[] = {CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
                                      static_cast<cl_mem_properties>(fd), 0};
  return clCreateBufferWithProperties(context, handle, 0, facts.size.count(), nullptr, &error);
}
#endif

int main() {
  auto client = heapbroker::Client::Connect({.name = "import_descriptor"});
  const heapbroker::AllocationRequest request = {.size = heapbroker::MiB(1),
                                                 .handle_type = heapbroker::HandleType::kOpaqueFd};
  auto lease = client.ok() ? (*client)->Allocate(request) : client.status();
  const auto fd = lease.ok() ? lease->fd() : lease.status();
  struct stat file = {};
  if (!fd.ok() || fstat(*fd, &file) != 0) {
    std::cerr << "import_descriptor: " << fd.status() << "\n";
    return 1;
  }
  const ImportFacts& facts = lease->facts();
  const auto& uuid = lease->block()->device().device_uuid;  // The importing device's, too.
  const absl::string_view id(reinterpret_cast<const char*>(uuid.data()), uuid.size());
  std::cout << "device " << absl::BytesToHexString(id) << "\nmemory type "
            << facts.memory_type_index << (facts.dedicated ? ", dedicated, " : ", ") << facts.size
            << " in an allocation of " << facts.allocation_size << "\ndescriptor " << *fd
            << (S_ISREG(file.st_mode) ? ", a file: memory of a software device\n" : "\n");
}
