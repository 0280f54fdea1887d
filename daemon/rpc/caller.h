// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Who makes a call. gRPC does not say: the caller shows its session's token.
#ifndef DAEMON_RPC_CALLER_H_
#define DAEMON_RPC_CALLER_H_

#include <sys/types.h>

#include <map>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/core/administrators.h"
#include "daemon/core/sessions.h"
#include "grpcpp/support/string_ref.h"

namespace heapbroker {

struct Caller {
  // Empty where none was sent.
  //   UNAUTHENTICATED  what was sent is no token
  absl::StatusOr<std::optional<SessionToken>> token = std::optional<SessionToken>();
  // When the client stops waiting; InfiniteFuture where it did not say.
  absl::Time deadline = absl::InfiniteFuture();
};

// The token in a call's metadata; see Caller::token.
absl::StatusOr<std::optional<SessionToken>> ReadSessionToken(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata);

// The session of a call that may come without one.
//   UNAUTHENTICATED  a token was sent, and it names no open session
absl::StatusOr<std::optional<Session>> FindSession(const Sessions& sessions, const Caller& caller);

// The session of a call that is about leases.
//   UNAUTHENTICATED      no token, or one that names no open session
//   FAILED_PRECONDITION  the session is an observer's
absl::StatusOr<Session> FindClientSession(const Sessions& sessions, const Caller& caller);

// Root and the daemon's own user.
bool IsAdministrator(const Session& session, uid_t daemon_uid);

// What a caller has shown of who it is.
enum class Standing { kNobody, kSession, kAdministrator };
Standing StandingOf(const Sessions& sessions, const Caller& caller,
                    const Administrators& administrators);

// The session of a call that only administrators may make; an observer's will do.
//   UNAUTHENTICATED    no token, or one that names no open session
//   PERMISSION_DENIED  the session is nobody's who may; `what` is what they may do:
//                      "trim"
absl::StatusOr<Session> FindAdministrator(const Sessions& sessions, const Caller& caller,
                                          uid_t daemon_uid, absl::string_view what);

}  // namespace heapbroker
#endif  // DAEMON_RPC_CALLER_H_
