// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Who is at the other end of a unix socket, as the kernel says.
#ifndef COMMON_POSIX_PEER_H_
#define COMMON_POSIX_PEER_H_

#include <sys/types.h>

#include "absl/status/statusor.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

// The process that connected, at the time when it did (SO_PEERCRED).
struct PeerCredentials {
  uid_t uid = 0;
  gid_t gid = 0;
  pid_t pid = 0;  // 0: it is in a pid namespace that this one does not see.
};

absl::StatusOr<PeerCredentials> GetPeerCredentials(const UniqueFd& socket);

// A descriptor, with close-on-exec, that becomes readable when the process that
// connected ends. Empty where the kernel cannot name the process: it is in a pid
// namespace that this one does not see.
//
// Asks the socket (SO_PEERPIDFD) and, on kernels older than 6.5, opens the pid
// and then checks that the connection is still there: a number that was used
// again belongs to a process whose predecessor closed its socket by dying.
//   UNAVAILABLE         the process has ended, or the connection has
//   RESOURCE_EXHAUSTED  descriptors ran out
absl::StatusOr<UniqueFd> OpenPeerPidfd(const UniqueFd& socket);

}  // namespace heapbroker
#endif  // COMMON_POSIX_PEER_H_
