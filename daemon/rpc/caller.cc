// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/caller.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/grpc/session_metadata.h"
#include "daemon/core/administrators.h"

namespace heapbroker {

static_assert(std::tuple_size_v<SessionToken> == kSessionTokenBytes);

absl::StatusOr<std::optional<SessionToken>> ReadSessionToken(
    const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) {
  const auto [first, last] = metadata.equal_range(kSessionMetadataKey);
  if (first == last) return std::optional<SessionToken>();
  if (std::next(first) != last) {
    return absl::UnauthenticatedError(absl::StrCat("the metadata key ", kSessionMetadataKey,
                                                   " was sent more than once; send one token"));
  }
  const grpc::string_ref& value = first->second;
  if (value.size() != kSessionTokenBytes) {
    return absl::UnauthenticatedError(
        absl::StrCat("the value of the metadata key ", kSessionMetadataKey, " has ", value.size(),
                     " bytes; a session token has ", kSessionTokenBytes,
                     ": send Welcome.token of the session socket as it came"));
  }
  SessionToken token;
  std::copy(value.begin(), value.end(), token.begin());
  return token;
}

absl::StatusOr<std::optional<Session>> FindSession(const Sessions& sessions, const Caller& caller) {
  HB_ASSIGN_OR_RETURN(const std::optional<SessionToken> token, caller.token);
  if (!token.has_value()) return std::optional<Session>();
  HB_ASSIGN_OR_RETURN(Session session, sessions.Find(*token));
  return std::optional<Session>(std::move(session));
}

namespace {

absl::Status NoSession() {
  return absl::UnauthenticatedError(
      absl::StrCat("the call came without a session; say hello on the session socket and send "
                   "Welcome.token in the metadata key ",
                   kSessionMetadataKey));
}

}  // namespace

absl::StatusOr<Session> FindClientSession(const Sessions& sessions, const Caller& caller) {
  HB_ASSIGN_OR_RETURN(std::optional<Session> session, FindSession(sessions, caller));
  if (!session.has_value()) return NoSession();
  if (session->identity.observer) {
    return absl::FailedPreconditionError(
        "the session is an observer's, which holds no memory; say hello with `observer` unset");
  }
  return *std::move(session);
}

bool IsAdministrator(const Session& session, uid_t daemon_uid) {
  return Administrators{daemon_uid}.Include(session.identity.uid);
}

Standing StandingOf(const Sessions& sessions, const Caller& caller,
                    const Administrators& administrators) {
  const absl::StatusOr<std::optional<Session>> session = FindSession(sessions, caller);
  if (!session.ok() || !session->has_value()) return Standing::kNobody;
  return administrators.Include((*session)->identity.uid) ? Standing::kAdministrator
                                                          : Standing::kSession;
}

absl::StatusOr<Session> FindAdministrator(const Sessions& sessions, const Caller& caller,
                                          uid_t daemon_uid, absl::string_view what) {
  HB_ASSIGN_OR_RETURN(std::optional<Session> session, FindSession(sessions, caller));
  if (!session.has_value()) return NoSession();
  if (!IsAdministrator(*session, daemon_uid)) {
    return absl::PermissionDeniedError(absl::StrCat(
        "only root and the daemon's own user (uid ", daemon_uid, ") may ", what,
        "; the session is of uid ", session->identity.uid, ": connect as one of them"));
  }
  return *std::move(session);
}

}  // namespace heapbroker
