// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/refusal.h"

#include <array>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace heapbroker {
namespace {

constexpr absl::string_view kPayload = "heapbroker/refusal";

std::string ByteSentence(const Refusal& refusal, absl::string_view limit) {
  const auto bytes = [](uint64_t count) { return FormatBytes(Bytes(count)); };
  if (refusal.kind == RefusalKind::kNeverFits) {
    // Its sum would, but it comes in pieces.
    const bool arrangement = refusal.limit == LimitKind::kHeapBudget && !refusal.heap &&
                             refusal.requested <= refusal.value;
    return absl::StrCat(
        bytes(refusal.requested), " can never fit in ", limit, " of ", bytes(refusal.value),
        arrangement ? ", however its blocks lie on the heaps; ask for smaller blocks"
                    : "; ask for less",
        ", or have the limit raised");
  }
  return absl::StrCat(bytes(refusal.requested), " asked for; of ", limit, " of ",
                      bytes(refusal.value), ", ", bytes(refusal.in_use), " are held and ",
                      bytes(refusal.free), " free or idle, of which one request could get ",
                      bytes(refusal.largest_now),
                      "; ask for less, or try when others have released some");
}

std::string CountSentence(const Refusal& refusal, absl::string_view things,
                          absl::string_view advice) {
  if (refusal.kind == RefusalKind::kNeverFits) {
    return absl::StrCat(refusal.requested, " asked for at once can never be had of ", refusal.value,
                        " ", things, "; ", advice);
  }
  return absl::StrCat(refusal.in_use, " of ", refusal.value, " ", things, " are held, asked for ",
                      "were ", refusal.requested, " more; ", advice,
                      ", or try when others have released some");
}

}  // namespace

std::string Sentence(const Refusal& refusal) {
  const std::string heap = refusal.heap ? absl::StrCat("heap ", *refusal.heap, ": ") : "";
  switch (refusal.limit) {
    case LimitKind::kHeapBudget:
      return absl::StrCat(heap, ByteSentence(refusal, "the daemon's budget"));
    case LimitKind::kMaxAllocationSize:
      return ByteSentence(refusal, "the device's largest allocation");
    case LimitKind::kMaxAllocationCount:
      return CountSentence(refusal, "allocations of the device", "ask for fewer, larger blocks");
    case LimitKind::kDescriptors:
      return CountSentence(refusal, "blocks that the daemon has descriptors for (RLIMIT_NOFILE)",
                           "ask for fewer, larger blocks");
    case LimitKind::kMemoryMaps:
      return CountSentence(refusal, "blocks that the daemon has mappings for (vm.max_map_count)",
                           "ask for fewer, larger blocks");
    case LimitKind::kDriver:
      return absl::StrCat(heap, "the driver refused ", FormatBytes(Bytes(refusal.requested)),
                          " although ", FormatBytes(Bytes(refusal.free)),
                          " of the daemon's budget were left; ask for less, or lower the budget "
                          "to what the driver has");
    case LimitKind::kWaitingCalls:
      return CountSentence(refusal, "waiting calls that a session may have",
                           "wait for some of them to end, or cancel them");
  }
  return "it does not fit";
}

absl::Status RefusalStatus(const Refusal& refusal, absl::string_view cause) {
  std::string text = Sentence(refusal);
  if (!cause.empty()) absl::StrAppend(&text, " (", cause, ")");
  absl::Status status = absl::ResourceExhaustedError(text);
  const std::array<uint64_t, 8> values = {static_cast<uint64_t>(refusal.kind),
                                          static_cast<uint64_t>(refusal.limit),
                                          refusal.heap ? *refusal.heap + uint64_t{1} : 0,
                                          refusal.value,
                                          refusal.in_use,
                                          refusal.requested,
                                          refusal.largest_now,
                                          refusal.free};
  status.SetPayload(kPayload, absl::Cord(absl::StrJoin(values, ",")));
  return status;
}

std::optional<Refusal> RefusalOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayload);
  if (!payload) return std::nullopt;
  std::array<uint64_t, 8> values{};
  size_t count = 0;
  const std::string text(*payload);
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    if (count == values.size() || !absl::SimpleAtoi(part, &values[count++])) return std::nullopt;
  }
  if (count != values.size()) return std::nullopt;
  Refusal refusal;
  refusal.kind = static_cast<RefusalKind>(values[0]);
  refusal.limit = static_cast<LimitKind>(values[1]);
  if (values[2] != 0) refusal.heap = static_cast<uint32_t>(values[2] - 1);
  refusal.value = values[3];
  refusal.in_use = values[4];
  refusal.requested = values[5];
  refusal.largest_now = values[6];
  refusal.free = values[7];
  return refusal;
}

}  // namespace heapbroker
