// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// heapbroker.v1.Admin: what changes for everybody.
#ifndef DAEMON_RPC_ADMIN_SERVICE_H_
#define DAEMON_RPC_ADMIN_SERVICE_H_

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "daemon/core/devices.h"
#include "daemon/core/sessions.h"
#include "daemon/rpc/caller.h"
#include "daemon/rpc/unary_call.h"
#include "heapbroker/v1/admin.pb.h"

namespace heapbroker {

// For administrators only: see FindAdministrator. Thread-safe; nothing blocks.
class AdminService {
 public:
  // Both must outlive the service. `daemon_uid` is the daemon's own user.
  AdminService(const Sessions& sessions, const Devices& devices, uid_t daemon_uid);

  void Trim(const Caller& caller, const v1::TrimRequest& request,
            UnaryReply<v1::TrimResponse> reply);

 private:
  absl::StatusOr<v1::TrimResponse> DoTrim(const Caller& caller, const v1::TrimRequest& request);

  const Sessions& sessions_;
  const Devices& devices_;
  const uid_t daemon_uid_;
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_ADMIN_SERVICE_H_
