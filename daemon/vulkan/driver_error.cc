// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/driver_error.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"
#include "daemon/core/refusal.h"
#include "daemon/vulkan/result.h"

namespace heapbroker {
namespace {

using Descriptors = ProcessLimits::Descriptors;

// Whether a driver may say this when the kernel refused it something. The last is
// SwiftShader's word for a descriptor that it could not duplicate.
bool MayBeTheKernels(VkResult result) {
  return result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY ||
         result == VK_ERROR_TOO_MANY_OBJECTS || result == VK_ERROR_MEMORY_MAP_FAILED ||
         result == VK_ERROR_INVALID_EXTERNAL_HANDLE;
}

Descriptors ProbeDescriptors() {
  std::array<UniqueFd, kNearDescriptorLimit> probes;
  for (UniqueFd& probe : probes) {
    probe.Reset(eventfd(0, EFD_CLOEXEC));
    if (probe) continue;
    if (errno == EMFILE) return Descriptors::kProcessLimit;
    if (errno == ENFILE) return Descriptors::kSystemLimit;
    return Descriptors::kAvailable;  // Another cause, of which nothing follows.
  }
  return Descriptors::kAvailable;
}

// Calls `use` with each piece of the file; nothing if it cannot be read.
template <typename Use>
void ReadPieces(const char* path, Use use) {
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  if (!file) return;
  // On the stack: at the limit of mappings the heap may not grow.
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    use(absl::string_view(buffer.data(), static_cast<size_t>(count)));
  }
}

void CountMemoryMaps(ProcessLimits& limits) {
  std::string limit;
  ReadPieces("/proc/sys/vm/max_map_count",
             [&](absl::string_view piece) { absl::StrAppend(&limit, piece); });
  uint64_t value = 0;
  if (!absl::SimpleAtoi(absl::StripAsciiWhitespace(limit), &value)) return;
  limits.memory_map_limit = value;
  ReadPieces("/proc/self/maps", [&](absl::string_view piece) {
    limits.memory_maps += static_cast<uint64_t>(std::count(piece.begin(), piece.end(), '\n'));
  });
}

std::string DescriptorText(const ProcessLimits& limits) {
  if (limits.descriptors == Descriptors::kSystemLimit) {
    return "the machine has no descriptor left to open (fs.file-max); each block takes some, so "
           "release blocks, or raise the limit by sysctl";
  }
  return absl::StrCat("the process is at its limit of ", limits.descriptor_limit,
                      " open descriptors (RLIMIT_NOFILE), of which each block takes some; release "
                      "blocks, or raise the limit (ulimit -n, LimitNOFILE=) and restart");
}

std::string MemoryMapText(const ProcessLimits& limits) {
  return absl::StrCat("the process has ", limits.memory_maps, " memory mappings of at most ",
                      limits.memory_map_limit,
                      " (vm.max_map_count), and blocks of some drivers take one each; release "
                      "blocks, or raise the limit by sysctl");
}

bool NearMemoryMapLimit(const ProcessLimits& limits) {
  return limits.memory_map_limit != 0 &&
         limits.memory_maps + kNearMemoryMapLimit >= limits.memory_map_limit;
}

// With the core's figures for programs, which are counts of what ran out, and with
// a text of its own: how many blocks that is, only the core could say.
absl::Status Refuse(LimitKind limit, uint64_t value, uint64_t in_use, const std::string& text) {
  Refusal refusal;
  refusal.limit = limit;
  refusal.value = value;
  refusal.in_use = in_use;
  refusal.requested = 1;
  absl::Status status = absl::ResourceExhaustedError(text);
  RefusalStatus(refusal).ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { status.SetPayload(url, payload); });
  return status;
}

// `said` and the limit that the process is at; OK where it is at none.
absl::Status LimitReached(absl::string_view said, const ProcessLimits& limits) {
  if (limits.descriptors != Descriptors::kAvailable) {
    return Refuse(LimitKind::kDescriptors, limits.descriptor_limit, limits.descriptor_limit,
                  absl::StrCat(said, ": ", DescriptorText(limits)));
  }
  if (NearMemoryMapLimit(limits)) {
    return Refuse(LimitKind::kMemoryMaps, limits.memory_map_limit, limits.memory_maps,
                  absl::StrCat(said, ": ", MemoryMapText(limits)));
  }
  return absl::OkStatus();
}

}  // namespace

ProcessLimits ReadProcessLimits() {
  ProcessLimits limits;
  limits.descriptors = ProbeDescriptors();
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) == 0) limits.descriptor_limit = descriptors.rlim_cur;
  CountMemoryMaps(limits);
  return limits;
}

absl::Status ExplainDriverError(VkResult result, absl::string_view call,
                                const ProcessLimits& limits) {
  if (!MayBeTheKernels(result)) return ResultToStatus(result, call);
  HB_RETURN_IF_ERROR(LimitReached(absl::StrCat(call, " failed with ", ResultName(result)), limits));
  return ResultToStatus(result, call);
}

absl::Status ExplainMissingDescriptor(absl::string_view call, const ProcessLimits& limits) {
  const std::string said = absl::StrCat(call, " reported success and gave no descriptor");
  HB_RETURN_IF_ERROR(LimitReached(said, limits));
  return absl::ResourceExhaustedError(
      absl::StrCat(said, ", and the process is not at a limit of its own"));
}

absl::Status DriverStatus(VkResult result, absl::string_view call) {
  if (!MayBeTheKernels(result)) return ResultToStatus(result, call);
  return ExplainDriverError(result, call, ReadProcessLimits());
}

}  // namespace heapbroker
