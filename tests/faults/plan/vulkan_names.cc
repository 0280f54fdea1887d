// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/vulkan_names.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"

namespace heapbroker::faults {
namespace {

template <typename Value>
struct Named {
  absl::string_view name;
  Value value;
};

#define HB_NAMED(value) \
  { #value, value }
constexpr Named<VkResult> kErrors[] = {
    HB_NAMED(VK_ERROR_OUT_OF_HOST_MEMORY),
    HB_NAMED(VK_ERROR_OUT_OF_DEVICE_MEMORY),
    HB_NAMED(VK_ERROR_INITIALIZATION_FAILED),
    HB_NAMED(VK_ERROR_DEVICE_LOST),
    HB_NAMED(VK_ERROR_MEMORY_MAP_FAILED),
    HB_NAMED(VK_ERROR_LAYER_NOT_PRESENT),
    HB_NAMED(VK_ERROR_EXTENSION_NOT_PRESENT),
    HB_NAMED(VK_ERROR_FEATURE_NOT_PRESENT),
    HB_NAMED(VK_ERROR_INCOMPATIBLE_DRIVER),
    HB_NAMED(VK_ERROR_TOO_MANY_OBJECTS),
    HB_NAMED(VK_ERROR_FORMAT_NOT_SUPPORTED),
    HB_NAMED(VK_ERROR_FRAGMENTED_POOL),
    HB_NAMED(VK_ERROR_UNKNOWN),
    HB_NAMED(VK_ERROR_OUT_OF_POOL_MEMORY),
    HB_NAMED(VK_ERROR_INVALID_EXTERNAL_HANDLE),
    HB_NAMED(VK_ERROR_FRAGMENTATION),
    HB_NAMED(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS),
    HB_NAMED(VK_ERROR_NOT_PERMITTED_KHR),
};
#undef HB_NAMED

constexpr Named<VkPhysicalDeviceType> kDeviceTypes[] = {
    {"discrete", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU},
    {"integrated", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU},
    {"virtual", VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU},
    {"cpu", VK_PHYSICAL_DEVICE_TYPE_CPU},
    {"other", VK_PHYSICAL_DEVICE_TYPE_OTHER},
};

constexpr Named<uint32_t> kMemoryFlags[] = {
    {"device_local", VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT},
    {"host_visible", VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT},
    {"host_coherent", VK_MEMORY_PROPERTY_HOST_COHERENT_BIT},
    {"host_cached", VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
    {"lazily_allocated", VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT},
    {"protected", VK_MEMORY_PROPERTY_PROTECTED_BIT},
};

constexpr Named<uint32_t> kHeapFlags[] = {
    {"device_local", VK_MEMORY_HEAP_DEVICE_LOCAL_BIT},
    {"multi_instance", VK_MEMORY_HEAP_MULTI_INSTANCE_BIT},
};

constexpr Named<uint32_t> kQueueFlags[] = {
    {"graphics", VK_QUEUE_GRAPHICS_BIT},
    {"compute", VK_QUEUE_COMPUTE_BIT},
    {"transfer", VK_QUEUE_TRANSFER_BIT},
};

constexpr Named<VkExternalMemoryHandleTypeFlagBits> kHandleTypes[] = {
    {"opaque_fd", VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT},
    {"dma_buf", VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT},
    {"host_allocation", VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT},
};

template <typename Value>
std::string Names(absl::Span<const Named<Value>> table) {
  return absl::StrJoin(table, ", ", [](std::string* out, const Named<Value>& named) {
    absl::StrAppend(out, named.name);
  });
}

template <typename Value>
absl::StatusOr<Value> Find(absl::Span<const Named<Value>> table, absl::string_view text,
                           absl::string_view what) {
  for (const Named<Value>& named : table) {
    if (named.name == text) return named.value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is no ", what, "; allowed are ", Names(table)));
}

absl::StatusOr<uint32_t> ParseFlags(absl::Span<const Named<uint32_t>> table, absl::string_view text,
                                    absl::string_view what) {
  if (text == "none") return 0;
  uint32_t flags = 0;
  const std::vector<absl::string_view> words = absl::StrSplit(text, '|');
  for (absl::string_view word : words) {
    HB_ASSIGN_OR_RETURN(const uint32_t flag, Find(table, word, what));
    flags |= flag;
  }
  return flags;
}

}  // namespace

absl::StatusOr<VkResult> ParseError(absl::string_view text) {
  int32_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) {
    return Find(absl::MakeConstSpan(kErrors), text, "error of Vulkan");
  }
  if (number < 0) return static_cast<VkResult>(number);
  return absl::InvalidArgumentError(
      absl::StrCat(number, " is no error; errors of Vulkan are below zero"));
}

absl::StatusOr<VkPhysicalDeviceType> ParseDeviceType(absl::string_view text) {
  return Find(absl::MakeConstSpan(kDeviceTypes), text, "type of device");
}

absl::StatusOr<VkMemoryPropertyFlags> ParseMemoryFlags(absl::string_view text) {
  return ParseFlags(kMemoryFlags, text, "property of memory");
}

absl::StatusOr<VkMemoryHeapFlags> ParseHeapFlags(absl::string_view text) {
  return ParseFlags(kHeapFlags, text, "property of a heap");
}

absl::StatusOr<VkQueueFlags> ParseQueueFlags(absl::string_view text) {
  return ParseFlags(kQueueFlags, text, "ability of a queue");
}

absl::StatusOr<VkExternalMemoryHandleTypeFlagBits> ParseHandleType(absl::string_view text) {
  return Find(absl::MakeConstSpan(kHandleTypes), text, "type of handle");
}

std::string ErrorName(VkResult result) {
  for (const auto& named : kErrors) {
    if (named.value == result) return std::string(named.name);
  }
  return absl::StrCat("VkResult ", static_cast<int>(result));
}

}  // namespace heapbroker::faults
