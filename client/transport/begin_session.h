// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How a session begins: which directory, and the hello.
#ifndef CLIENT_TRANSPORT_BEGIN_SESSION_H_
#define CLIENT_TRANSPORT_BEGIN_SESSION_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/transport/call_limits.h"
#include "client/transport/session_channel.h"
#include "heapbroker/client.h"
#include "heapbroker/v1/session.pb.h"

namespace heapbroker {

struct BegunSession {
  std::string runtime_dir{};  // Absolute.
  std::unique_ptr<SessionChannel> channel{};
  v1::Welcome welcome{};
};

// With the daemon in the first directory that has one. Errors of Client::Connect.
absl::StatusOr<BegunSession> BeginSession(const ClientOptions& options, const CallLimits& limits);

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_BEGIN_SESSION_H_
