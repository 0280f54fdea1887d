// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The second half of pool_spec.h: what a configuration means on a device.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text.h"
#include "daemon/core/pool_spec.h"

namespace heapbroker {
namespace {

// Pools hold what can be exported, whatever the kind of handle.
bool CanBeExported(const MemoryTypeInfo& type) { return type.exportable.any(); }

bool Serves(const MemoryTypeInfo& type, const MemoryTypeWish& wish) {
  return CanBeExported(type) && Satisfies(type, wish);
}

std::string DeviceText(const DeviceInfo& device) {
  return absl::StrCat("device ", device.index, " (", Printable(device.name), ")");
}

std::string OffersText(const DeviceInfo& device) {
  std::vector<std::string> types;
  for (const MemoryTypeInfo& type : device.memory_types) {
    if (!CanBeExported(type)) continue;
    std::string text = MemoryTypeText(type);
    // Several types with the same properties are usual.
    if (std::find(types.begin(), types.end(), text) == types.end()) {
      types.push_back(std::move(text));
    }
  }
  return absl::StrCat(DeviceText(device), ": ",
                      types.empty() ? "no exportable memory type" : absl::StrJoin(types, ", "));
}

// Whether `pool` takes whatever `later`, of the same memory type, would take.
bool LeavesNothingTo(const ResolvedPool& pool, const ResolvedPool& later) {
  return pool.memory_type == later.memory_type && (!pool.transient || later.transient) &&
         pool.limits.max_allocation_size >= later.limits.max_allocation_size &&
         pool.limits.max_allocation_capacity == Bytes::Max();
}

class Resolver {
 public:
  explicit Resolver(const DeviceInfo& device) : device_(device) {
    result_.offers = OffersText(device);
    MemoryTypeWish host_local;
    host_local.host_local = true;
    for (const MemoryTypeInfo& type : device.memory_types) {
      result_.any_host_local |= Serves(type, host_local);
    }
  }

  void Add(const PoolSpec& spec) {
    bool matched = false;
    for (uint32_t type = 0; type < device_.memory_types.size(); ++type) {
      if (!Serves(device_.memory_types[type], spec.wish)) continue;
      AddPool(spec, type);
      matched = true;
      if (!spec.every_type) break;
    }
    result_.matched.push_back(matched);
    if (!matched) NoteUnused(spec);
  }

  ResolvedPools Take() && { return std::move(result_); }

 private:
  void AddPool(const PoolSpec& spec, uint32_t type) {
    ResolvedPool pool;
    pool.name = spec.every_type ? absl::StrCat("type ", type)
                                : absl::StrCat(spec.text, " (type ", type, ")");
    const auto equal = std::count(bases_.begin(), bases_.end(), pool.name);
    bases_.push_back(pool.name);
    if (equal > 0) absl::StrAppend(&pool.name, " #", equal + 1);
    pool.memory_type = type;
    pool.every_type = spec.every_type;
    pool.transient = spec.wish.transient;
    pool.limits = spec.limits;
    NoteUnreached(pool);
    result_.pools.push_back(std::move(pool));
  }

  void NoteUnused(const PoolSpec& spec) {
    std::string note = absl::StrCat("pool \"", spec.text, "\" is unused on ", DeviceText(device_));
    if (spec.wish.host_local && !result_.any_host_local) {
      absl::StrAppend(&note,
                      ": none of its exportable memory types is host_local, that is, host-visible "
                      "and coherent without being device-local; host_visible names memory that is "
                      "unified");
    } else {
      absl::StrAppend(&note, ": no exportable memory type has all of this");
    }
    absl::StrAppend(&note, "; it has ", result_.offers);
    result_.notes.push_back(std::move(note));
  }

  // A pool of every memory type is often meant for what is left: no note there.
  void NoteUnreached(const ResolvedPool& pool) {
    if (pool.every_type) return;
    for (const ResolvedPool& earlier : result_.pools) {
      if (!LeavesNothingTo(earlier, pool)) continue;
      result_.notes.push_back(
          absl::StrCat("pool \"", pool.name, "\" is never reached on ", DeviceText(device_), ": \"",
                       earlier.name,
                       "\", of the same memory type, stands before it and takes all it would take; "
                       "put the smaller max_allocation_size first"));
      return;
    }
  }

  const DeviceInfo& device_;
  std::vector<std::string> bases_;  // Names before what tells equal ones apart.
  ResolvedPools result_;
};

}  // namespace

ResolvedPools ResolvePools(absl::Span<const PoolSpec> specs, const DeviceInfo& device) {
  Resolver resolver(device);
  for (const PoolSpec& spec : specs) resolver.Add(spec);
  return std::move(resolver).Take();
}

absl::Status CheckEverySpecMatches(absl::Span<const PoolSpec> specs,
                                   absl::Span<const ResolvedPools> devices) {
  for (size_t i = 0; i < specs.size(); ++i) {
    const MemoryTypeWish& wish = specs[i].wish;
    // Device-local host_local memory cannot exist: that is no unified device's fault.
    const bool may_be_unused = wish.host_local && !wish.device_local;
    const auto accepts = [i, may_be_unused](const ResolvedPools& device) {
      return device.matched[i] || (may_be_unused && !device.any_host_local);
    };
    if (std::any_of(devices.begin(), devices.end(), accepts)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "pool \"", specs[i].text, "\": no device has an exportable memory type with all of this; ",
        absl::StrJoin(devices, "; ",
                      [](std::string* out, const ResolvedPools& device) {
                        absl::StrAppend(out, device.offers);
                      }),
        "; name what they have, of ", KnownMemoryTypeNames(), ", or \"*\" for every memory type"));
  }
  return absl::OkStatus();
}

}  // namespace heapbroker
