// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/src/import_checks.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
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

}  // namespace

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
  // Only files in memory have seals. Of other kinds of file a driver alone knows
  // what their size means.
  const bool in_memory = S_ISREG(info.st_mode) && fcntl(fd, F_GET_SEALS) >= 0;
  const uint64_t size = static_cast<uint64_t>(std::max<off_t>(info.st_size, 0));
  if (in_memory && size < facts.allocation_size.count()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the descriptor of block ", facts.block_id, " holds ", size, " bytes and the block has ",
        facts.allocation_size.count(), "; it is not the block's"));
  }
  return absl::OkStatus();
}

uint32_t MaxImports(uint32_t max_allocation_count, uint32_t other_allocations) {
  const uint32_t margin = std::min<uint32_t>(16, max_allocation_count / 8);
  const uint64_t taken = uint64_t{margin} + other_allocations;
  return taken >= max_allocation_count ? 0 : max_allocation_count - static_cast<uint32_t>(taken);
}

}  // namespace heapbroker
