// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/import_checks.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/posix/posix_error.h"

namespace heapbroker {
namespace {

std::string Describe(const std::string& name, const Uuid& device, const Uuid& driver) {
  return absl::StrCat(name, " (device UUID ", FormatUuid(device), ", driver UUID ",
                      FormatUuid(driver), ")");
}

// Empty for kinds that a driver may use.
const char* KindThatIsNoMemory(mode_t mode) {
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISLNK(mode)) return "a symbolic link";
  return nullptr;
}

absl::Status TooSmall(const ImportFacts& facts, uint64_t size) {
  return absl::FailedPreconditionError(absl::StrCat(
      "the descriptor of block ", facts.block_id, " holds ", size, " bytes and the block has ",
      facts.allocation_size.count(), "; it is not the block's"));
}

absl::Status CheckDmaBuf(const ImportFacts& facts, int fd) {
  struct statfs file_system;
  if (fstatfs(fd, &file_system) != 0 || file_system.f_type != DMA_BUF_MAGIC) {
    return absl::FailedPreconditionError(
        absl::StrCat("the descriptor of block ", facts.block_id, " is no dma-buf"));
  }
  const off_t size = lseek(fd, 0, SEEK_END);
  if (size < 0) {
    return PosixError(
        errno, absl::StrCat("the dma-buf of block ", facts.block_id, " does not tell its size"));
  }
  if (static_cast<uint64_t>(size) < facts.allocation_size.count()) {
    return TooSmall(facts, static_cast<uint64_t>(size));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckUsage(const ImportFacts& facts, VkBufferUsageFlags usage,
                        const VulkanContext& context) {
  if (usage == 0) return absl::InvalidArgumentError("usage must name at least one use");
  if (facts.handle_type == HandleType::kDmaBuf && !context.dma_bufs) {
    return absl::FailedPreconditionError(absl::StrCat(
        "block ", facts.block_id,
        " is a dma-buf; pass all of DmaBufDeviceExtensions() to "
        "vkCreateDevice and set VulkanContext::dma_bufs, or ask for an opaque descriptor"));
  }
  const bool opaque_fd = facts.handle_type == HandleType::kOpaqueFd;
  const bool wants_address = (usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT) != 0;
  if (wants_address && !facts.device_address) {
    return absl::FailedPreconditionError(
        absl::StrCat("block ", facts.block_id,
                     " was not made for device addresses; ask for them when it is allocated"));
  }
  // The flags of an opaque descriptor's import must be the exporter's.
  if (facts.device_address && (opaque_fd || wants_address) && !context.device_addresses) {
    return absl::FailedPreconditionError(
        absl::StrCat("block ", facts.block_id,
                     " has device addresses; create the device with the feature "
                     "bufferDeviceAddress and set VulkanContext::device_addresses"));
  }
  return facts.dedicated && opaque_fd ? CheckDedicatedUsage(facts, usage) : absl::OkStatus();
}

absl::Status CheckDedicatedUsage(const ImportFacts& facts, VkBufferUsageFlags usage) {
  if ((usage & ~DedicatedUsage(facts)) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("block ", facts.block_id, " is dedicated to a buffer of usage 0x",
                   absl::Hex(DedicatedUsage(facts)), ", which does not cover 0x", absl::Hex(usage),
                   "; ask for less, or for a block that is not dedicated"));
}

VkBufferUsageFlags DedicatedUsage(const ImportFacts& facts) {
  return kDedicatedBufferUsage |
         (facts.device_address ? VkBufferUsageFlags{VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT} : 0);
}

absl::StatusOr<uint32_t> ChooseDmaBufType(const ImportFacts& facts, bool same_device,
                                          uint32_t descriptor_types, uint32_t buffer_types,
                                          const VkPhysicalDeviceMemoryProperties& memory) {
  const uint32_t allowed = descriptor_types & buffer_types;
  const auto first = [&](auto wanted) -> std::optional<uint32_t> {
    for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
      if ((allowed >> i & 1) != 0 && wanted(i, memory.memoryTypes[i].propertyFlags)) return i;
    }
    return std::nullopt;
  };
  const uint32_t flags = facts.memory_property_flags;
  const uint32_t visible = flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  std::optional<uint32_t> type;
  if (same_device) {
    type = first([&](uint32_t index, uint32_t) { return index == facts.memory_type_index; });
  }
  if (!type) type = first([&](uint32_t, uint32_t its) { return its == flags; });
  if (!type) type = first([&](uint32_t, uint32_t its) { return (its & visible) == visible; });
  if (!type) type = first([](uint32_t, uint32_t) { return true; });
  if (type) return *type;
  return absl::FailedPreconditionError(
      absl::StrCat("no memory type of this device takes both the dma-buf of block ", facts.block_id,
                   " (possible: 0x", absl::Hex(descriptor_types),
                   ") and a buffer of this usage (possible: 0x", absl::Hex(buffer_types), ")"));
}

absl::Status CheckDevice(const BrokerDevice& broker, const ImportingDevice& importer) {
  if (broker.device_uuid == importer.device_uuid && broker.driver_uuid == importer.driver_uuid) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "the memory lies on ", Describe(broker.name, broker.device_uuid, broker.driver_uuid),
      " and this application's device is ",
      Describe(importer.name, importer.device_uuid, importer.driver_uuid),
      "; create the device on the broker's, with the same driver"));
}

absl::Status CheckMemoryType(const ImportFacts& facts,
                             const VkPhysicalDeviceMemoryProperties& memory) {
  const uint32_t index = facts.memory_type_index;
  if (index >= memory.memoryTypeCount) {
    return absl::FailedPreconditionError(
        absl::StrCat("block ", facts.block_id, " has memory type ", index, " and this device has ",
                     memory.memoryTypeCount, " types; it is not the broker's device"));
  }
  const uint32_t flags = memory.memoryTypes[index].propertyFlags;
  if (flags != facts.memory_property_flags) {
    return absl::FailedPreconditionError(absl::StrCat(
        "memory type ", index, " has flags 0x", absl::Hex(flags), " here and 0x",
        absl::Hex(facts.memory_property_flags), " at the broker; it is not the broker's device"));
  }
  return absl::OkStatus();
}

absl::Status CheckRequirements(const ImportFacts& facts, const VkMemoryRequirements& requirements) {
  if ((requirements.memoryTypeBits & (uint32_t{1} << facts.memory_type_index)) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("a buffer of this usage cannot lie in memory type ", facts.memory_type_index,
                     " (possible: 0x", absl::Hex(requirements.memoryTypeBits),
                     "); ask for another kind of memory or usage"));
  }
  if (requirements.size > facts.allocation_size.count()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a buffer of ", facts.size.count(), " bytes needs ", requirements.size,
                     " bytes of memory with this usage and block ", facts.block_id, " has ",
                     facts.allocation_size.count(), "; allocate a larger block"));
  }
  return absl::OkStatus();
}

absl::Status CheckDescriptor(const ImportFacts& facts, int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return PosixError(errno,
                      absl::StrCat("cannot look at the descriptor of block ", facts.block_id));
  }
  if (const char* kind = KindThatIsNoMemory(info.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat("the descriptor of block ", facts.block_id,
                                                      " is ", kind, " and no device memory"));
  }
  if (facts.handle_type == HandleType::kDmaBuf) return CheckDmaBuf(facts, fd);
  // Only files in memory have seals. Of other kinds of file a driver alone knows
  // what their size means.
  const bool in_memory = S_ISREG(info.st_mode) && fcntl(fd, F_GET_SEALS) >= 0;
  const uint64_t size = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
  if (in_memory && size < facts.allocation_size.count()) return TooSmall(facts, size);
  return absl::OkStatus();
}

uint32_t MaxImports(uint32_t max_allocation_count, uint32_t other_allocations) {
  const uint32_t margin = std::min<uint32_t>(16, max_allocation_count / 8);
  const uint64_t taken = uint64_t{margin} + other_allocations;
  return taken >= max_allocation_count ? 0 : max_allocation_count - static_cast<uint32_t>(taken);
}

}  // namespace heapbroker
