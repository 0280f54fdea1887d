// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/convert_watch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/rpc/convert_time.h"

namespace heapbroker {
namespace {

absl::Status CheckIdle(const v1::IdleBytes& idle, const Devices& devices, absl::string_view field) {
  const size_t device_count = devices.all().size();
  if (idle.device_index() >= device_count) {
    return absl::InvalidArgumentError(absl::StrCat(field, ".device_index: is ", idle.device_index(),
                                                   "; this daemon has ", device_count,
                                                   " devices, counted from 0"));
  }
  const size_t heap_count = devices.all()[idle.device_index()]->info().heaps.size();
  if (idle.heap_index() >= heap_count) {
    return absl::InvalidArgumentError(absl::StrCat(field, ".heap_index: is ", idle.heap_index(),
                                                   "; device ", idle.device_index(), " has ",
                                                   heap_count, " heaps, counted from 0"));
  }
  return absl::OkStatus();
}

void FillEvent(const GiveBackWanted& wanted, absl::Time now, v1::WatchEvent& out) {
  v1::GiveBack& message = *out.mutable_give_back();
  message.set_device_index(wanted.device);
  message.set_heap_index(wanted.heap);
  message.set_bytes(wanted.bytes.count());
  *message.mutable_time() = DurationMessage(std::max(wanted.deadline - now, absl::ZeroDuration()));
}

void FillEvent(const SegmentSealed& sealed, absl::Time /*now*/, v1::WatchEvent& out) {
  v1::SegmentSealed& message = *out.mutable_segment_sealed();
  message.set_segment_id(sealed.segment.value());
  message.set_name(sealed.name);
  message.set_device_index(sealed.device);
}

}  // namespace

absl::StatusOr<IdleByDevice> IdleByDeviceOf(const v1::WatchRequest& message,
                                            const Devices& devices) {
  IdleByDevice by_device(devices.all().size());
  for (int i = 0; i < message.idle_size(); ++i) {
    const v1::IdleBytes& idle = message.idle(i);
    HB_RETURN_IF_ERROR(CheckIdle(idle, devices, absl::StrCat("idle[", i, "]")));
    std::vector<IdleReport>& reports = by_device[idle.device_index()];
    const bool twice =
        std::any_of(reports.begin(), reports.end(),
                    [&idle](const IdleReport& report) { return report.heap == idle.heap_index(); });
    if (twice) {
      return absl::InvalidArgumentError(
          absl::StrCat("idle[", i, "].heap_index: heap ", idle.heap_index(), " of device ",
                       idle.device_index(), " was named before; name each once"));
    }
    reports.push_back({idle.heap_index(), Bytes(idle.bytes())});
  }
  return by_device;
}

v1::WatchEvent WatchEventMessage(const WatchedEvent& event, absl::Time now) {
  v1::WatchEvent message;
  std::visit([&](const auto& told) { FillEvent(told, now, message); }, event);
  return message;
}

}  // namespace heapbroker
