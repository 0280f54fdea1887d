// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/segment_shape.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/core/memory_type_choice.h"

namespace heapbroker {
namespace {

bool IsSameMemory(const SegmentWaiter& a, const SegmentWaiter& b) {
  if (a.request.memory == b.request.memory) return true;
  // Two names are two kinds even where a device has the same memory for both: on
  // another one they would differ.
  return MemoryWishName(a.request.memory) == MemoryWishName(b.request.memory) &&
         std::equal(a.placement->types.begin(), a.placement->types.end(),
                    b.placement->types.begin(), b.placement->types.end(),
                    [](const MemoryTypeChoice& one, const MemoryTypeChoice& other) {
                      return one.memory_type == other.memory_type;
                    });
}

// With the types, since one name can stand for two things: what it prefers, or what it
// must have.
std::string Text(const SegmentWaiter& waiter) {
  const std::vector<MemoryTypeChoice>& types = waiter.placement->types;
  const std::string indices =
      absl::StrJoin(types, ", ", [](std::string* out, const MemoryTypeChoice& type) {
        absl::StrAppend(out, type.memory_type);
      });
  return absl::StrCat(waiter.request.size.count(), " bytes of ",
                      MemoryWishName(waiter.request.memory), " (memory type",
                      types.size() == 1 ? "" : "s", " ", indices, ") as ",
                      HandleTypeName(waiter.placement->handle_type));
}

}  // namespace

absl::Status CheckSameShape(const SegmentWaiter& wanted, const SegmentWaiter& writer) {
  if (wanted.request.mode != OpenMode::kCreateOrAttach) return absl::OkStatus();
  const bool same_handle_type =
      !wanted.request.handle_type || *wanted.request.handle_type == writer.placement->handle_type;
  if (wanted.request.size == writer.request.size && same_handle_type &&
      IsSameMemory(wanted, writer)) {
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(absl::StrCat("segment \"", wanted.request.name, "\" exists with ",
                                               Text(writer), ", asked for were ", Text(wanted),
                                               "; attach without a size, or choose another name"));
}

}  // namespace heapbroker
