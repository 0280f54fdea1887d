// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "daemon/session/open_session.h"

#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/posix/posix_error.h"

namespace heapbroker {
namespace {

absl::StatusOr<SessionToken> RandomToken() {
  SessionToken token;
  ssize_t size;
  do {
    size = getrandom(token.data(), token.size(), 0);
  } while (size < 0 && errno == EINTR);
  // Up to 256 bytes come whole.
  if (size != static_cast<ssize_t>(token.size())) {
    return PosixError(errno, "cannot draw a session token");
  }
  return token;
}

}  // namespace

OpenSession::OpenSession(Sessions& sessions, absl::Span<DeviceBroker* const> brokers,
                         Session session, const SessionToken& token)
    : sessions_(sessions),
      brokers_(brokers),
      devices_(brokers.begin(), brokers.end()),
      session_(std::move(session)),
      token_(token) {}

OpenSession::~OpenSession() {
  sessions_.End(session_.id);
  if (session_.identity.observer) return;
  for (DeviceBroker* device : devices_) device->EndSession(session_.id);
}

absl::Status OpenSession::Admit() {
  absl::Status refusal;
  devices_.clear();
  for (DeviceBroker* broker : brokers_) {
    const absl::Status added = broker->AddSession(session_.id, session_.tenant());
    if (added.ok()) {
      devices_.push_back(broker);
    } else if (absl::IsPermissionDenied(added)) {
      // Keeps the first: each says that another tenant has the device.
      refusal.Update(added);
    } else {
      return added;
    }
  }
  return devices_.empty() ? refusal : absl::OkStatus();
}

absl::StatusOr<FetchedBlock> OpenSession::Fetch(BlockId block) const {
  const uint32_t device = DeviceIndexOf(block);
  // The first one never gave out what is on no device, and says so.
  DeviceBroker& broker = device < brokers_.size() ? *brokers_[device] : *brokers_.front();
  return broker.Fetch(session_.id, block);
}

SessionGate::SessionGate(Sessions& sessions, std::vector<DeviceBroker*> brokers,
                         SessionCountLimits limits)
    : sessions_(sessions), brokers_(std::move(brokers)), limits_(limits) {}

absl::Status SessionGate::CheckCount(const SessionIdentity& identity) const {
  const bool observer = identity.observer;
  const Sessions::Counts counts = sessions_.Count();
  const size_t count = observer ? counts.observers : counts.clients;
  const size_t limit = (observer ? limits_.observers : limits_.clients) +
                       (limits_.administrators.Include(identity.uid) ? limits_.reserved : 0);
  if (count < limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("the daemon has ", count, " of ", limit,
                                                   observer ? " observer" : "",
                                                   " sessions; end one or try again later"));
}

absl::StatusOr<std::unique_ptr<OpenSession>> SessionGate::Open(SessionIdentity identity) {
  HB_RETURN_IF_ERROR(CheckCount(identity));
  HB_ASSIGN_OR_RETURN(const SessionToken token, RandomToken());
  // From here on the destructor undoes what was done; nobody has the token yet.
  std::unique_ptr<OpenSession> open = absl::WrapUnique(
      new OpenSession(sessions_, brokers_, sessions_.Open(std::move(identity), token), token));
  if (!open->session().identity.observer) HB_RETURN_IF_ERROR(open->Admit());
  return open;
}

}  // namespace heapbroker
