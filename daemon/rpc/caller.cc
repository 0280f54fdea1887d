// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/caller.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/grpc/session_metadata.h"

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

absl::StatusOr<Session> FindClientSession(const Sessions& sessions, const Caller& caller) {
  HB_ASSIGN_OR_RETURN(std::optional<Session> session, FindSession(sessions, caller));
  if (!session.has_value()) {
    return absl::UnauthenticatedError(
        absl::StrCat("the call came without a session; say hello on the session socket and send "
                     "Welcome.token in the metadata key ",
                     kSessionMetadataKey));
  }
  if (session->identity.observer) {
    return absl::FailedPreconditionError(
        "the session is an observer's, which holds no memory; say hello with `observer` unset");
  }
  return *std::move(session);
}

}  // namespace heapbroker
