// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Real exported memory for the fake daemon to hand out.
#ifndef TESTS_UNIT_CLIENT_VULKAN_BLOCK_SOURCE_H_
#define TESTS_UNIT_CLIENT_VULKAN_BLOCK_SOURCE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/src/import_buffer.h"
#include "common/base/mutex.h"
#include "heapbroker/vulkan_importer.h"
#include "tests/unit/client/fake_daemon.h"

namespace heapbroker {

// The first device that Vulkan finds, as a broker would describe it.
absl::StatusOr<BrokerDevice> FirstVulkanDevice();

// Blocks on that device, exported from a VkDevice of its own. All of them live
// as long as this object. Thread-safe.
class VulkanBlockSource final : public BlockSource {
 public:
  static absl::StatusOr<std::unique_ptr<VulkanBlockSource>> Create();
  ~VulkanBlockSource() override;

  absl::StatusOr<Made> Make(uint64_t size) override;
  v1::Device Device() const override;

  // Blocks that are made from now on are of this kind. The size of a dedicated block has
  // to be a multiple of what the driver rounds to.
  struct Kind {
    HandleType handle_type = HandleType::kOpaqueFd;
    bool device_address = false;
    bool dedicated = false;
  };
  void MakeFromNowOn(const Kind& kind) {
    MutexLock lock(mutex_);
    kind_ = kind;
  }
  const MinimalDevice& device() const { return *device_; }

 private:
  VulkanBlockSource(const BrokerDevice& description, std::unique_ptr<MinimalDevice> device)
      : description_(description), device_(std::move(device)) {}

  const BrokerDevice description_;
  const std::unique_ptr<MinimalDevice> device_;
  Mutex mutex_;
  Kind kind_ ABSL_GUARDED_BY(mutex_);
  std::vector<VkDeviceMemory> memories_ ABSL_GUARDED_BY(mutex_);
  std::vector<ImportBuffer> dedicated_buffers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CLIENT_VULKAN_BLOCK_SOURCE_H_
