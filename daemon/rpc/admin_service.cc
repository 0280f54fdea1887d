// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/admin_service.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "daemon/rpc/convert.h"

namespace heapbroker {
namespace {

TrimRequest TrimRequestOf(const v1::TrimRequest& message) {
  TrimRequest request;
  if (message.has_pool()) request.pool = message.pool();
  request.target = Bytes(message.target_bytes());
  request.segments = message.segments();
  return request;
}

// A pool need not be on every device: it is unknown where none has it.
absl::StatusOr<TrimResult> TrimAll(const Devices& devices, const TrimRequest& request) {
  TrimResult sum;
  absl::Status unknown;
  bool found = false;
  for (DeviceBroker* device : devices.all()) {
    const absl::StatusOr<TrimResult> trimmed = device->Trim(request);
    if (absl::IsNotFound(trimmed.status())) {
      unknown.Update(trimmed.status());
      continue;
    }
    HB_RETURN_IF_ERROR(trimmed.status());
    found = true;
    sum.bytes += trimmed->bytes;
    sum.blocks += trimmed->blocks;
  }
  if (!found) return unknown;
  return sum;
}

}  // namespace

AdminService::AdminService(const Sessions& sessions, const Devices& devices, uid_t daemon_uid)
    : sessions_(sessions), devices_(devices), daemon_uid_(daemon_uid) {}

void AdminService::Trim(const Caller& caller, const v1::TrimRequest& request,
                        UnaryReply<v1::TrimResponse> reply) {
  reply.Finish(DoTrim(caller, request));
}

absl::StatusOr<v1::TrimResponse> AdminService::DoTrim(const Caller& caller,
                                                      const v1::TrimRequest& request) {
  HB_RETURN_IF_ERROR(FindAdministrator(sessions_, caller, daemon_uid_, "trim").status());
  const TrimRequest trim = TrimRequestOf(request);
  absl::StatusOr<TrimResult> trimmed;
  if (const std::optional<uint32_t> index = DeviceIndexIn(request)) {
    HB_ASSIGN_OR_RETURN(DeviceBroker* const device, devices_.Named(index));
    trimmed = device->Trim(trim);
  } else {
    trimmed = TrimAll(devices_, trim);
  }
  HB_RETURN_IF_ERROR(trimmed.status());
  v1::TrimResponse response;
  response.set_bytes(trimmed->bytes.count());
  response.set_blocks(trimmed->blocks);
  return response;
}

}  // namespace heapbroker
