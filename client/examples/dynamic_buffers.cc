// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// An engine that makes and drops tensors as it goes: for each token one to keep, and
// scratch memory. What it has no use for any more, other processes can have.
#include <cstdlib>
#include <iostream>
#include <utility>
#include <vector>

#include "heapbroker/client.h"
#include "heapbroker/device_allocator.h"
#include "heapbroker/vulkan_importer.h"

namespace {

using heapbroker::DeviceAllocator;

// What the engine's tensors have instead of a VkDeviceMemory: freed with the tensor.
class Tensor {
 public:
  static absl::StatusOr<Tensor> Create(DeviceAllocator& allocator, heapbroker::Bytes size) {
    auto made = allocator.Allocate(size);
    if (!made.ok()) return made.status();
    return Tensor(allocator, *made);
  }
  Tensor(Tensor&& other) noexcept
      : allocator_(std::exchange(other.allocator_, nullptr)), memory_(other.memory_) {}
  // The device must be done with it.
  ~Tensor() {
    if (allocator_ != nullptr) allocator_->Free(memory_.handle).IgnoreError();
  }

  // For descriptors: range().buffer().handle(), range().offset() and range().size().
  const heapbroker::BufferRange& range() const { return memory_.range; }

 private:
  Tensor(DeviceAllocator& allocator, const heapbroker::DeviceAllocation& memory)
      : allocator_(&allocator), memory_(memory) {}

  DeviceAllocator* allocator_;
  heapbroker::DeviceAllocation memory_;
};

absl::Status Run(int tokens) {
  auto client = heapbroker::Client::Connect({.name = "dynamic_buffers"});
  if (!client.ok()) return client.status();
  auto device = heapbroker::MinimalDevice::Create((*client)->devices().front());
  if (!device.ok()) return device.status();
  auto importer = heapbroker::VulkanImporter::Create((*device)->context());
  if (!importer.ok()) return importer.status();
  auto cache = heapbroker::LocalCache::Start(**client, **importer);
  if (!cache.ok()) return cache.status();
  auto allocator = DeviceAllocator::Create(*cache);
  if (!allocator.ok()) return allocator.status();

  std::vector<Tensor> kept;
  for (int token = 0; token < tokens; ++token) {
    auto scratch = Tensor::Create(**allocator, heapbroker::MiB(3));
    auto entry = Tensor::Create(**allocator, heapbroker::KiB(96));
    // RESOURCE_EXHAUSTED: RefusalOf (memory_refusal.h) says what would fit.
    if (!scratch.ok() || !entry.ok()) return scratch.ok() ? entry.status() : scratch.status();
    kept.push_back(*std::move(entry));
  }
  const auto used = (*allocator)->stats();
  std::cout << used.allocations << " tensors in " << used.blocks << " blocks of " << used.leased
            << "\n";
  kept.clear();
  std::cout << (*cache)->stats().idle << " are idle and go back by themselves\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? std::atoi(argv[1]) : 100);
  if (!status.ok()) std::cerr << "dynamic_buffers: " << status << "\n";
  return status.ok() ? 0 : 1;
}
