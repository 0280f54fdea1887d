// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The requests that a client may repeat.
#ifndef DAEMON_CORE_REQUEST_IDS_H_
#define DAEMON_CORE_REQUEST_IDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "daemon/core/requests.h"

namespace heapbroker {

// Remembers what each request id of a session stands for, for as long as it waits
// or any of its blocks is held: a client whose reply was lost asks again with the
// same id and gets the same answer.
//
// Bookkeeping only; guarded by its owner's mutex.
class RequestIds {
 public:
  using Key = std::pair<SessionId, RequestId>;

  struct Pending {
    CallId call;
  };
  using Found = std::variant<Pending, Grant>;

  // What the request stands for; unset where it is new. An unset id is always new.
  //   INVALID_ARGUMENT     the id stands for a request that asks for something else
  //   FAILED_PRECONDITION  some of what was granted has been given back since
  absl::StatusOr<std::optional<Found>> Find(SessionId session,
                                            const AllocateRequest& request) const;

  // `request` begins to wait as `call`, or goes on waiting as that. Nothing for an
  // unset id; likewise below.
  void Wait(SessionId session, const AllocateRequest& request, CallId call);
  void Granted(SessionId session, RequestId request, const Grant& grant);
  void Failed(SessionId session, RequestId request);
  void Released(SessionId session, RequestId request, BlockId block);
  void EndSession(SessionId session);

  // What has to be undone: the call that waits, or the blocks still held.
  struct ToUndo {
    std::optional<CallId> call;
    std::vector<BlockId> blocks;
  };
  //   INVALID_ARGUMENT  the id is unset
  //   NOT_FOUND         it waits for nothing and holds nothing
  absl::StatusOr<ToUndo> Undo(SessionId session, RequestId request) const;

 private:
  struct Entry {
    uint64_t fingerprint = 0;  // Of what was asked for.
    std::optional<CallId> call;
    Grant grant;
    std::vector<BlockId> held;
  };
  std::map<Key, Entry> entries_;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_REQUEST_IDS_H_
