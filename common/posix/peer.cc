// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "common/base/status_macros.h"
#include "common/posix/posix_error.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77  // Linux 6.5; newer than the C library's headers.
#endif

namespace heapbroker {
namespace {

absl::StatusOr<UniqueFd> OpenPidfdByNumber(const UniqueFd& socket) {
  HB_ASSIGN_OR_RETURN(const PeerCredentials peer, GetPeerCredentials(socket));
  if (peer.pid == 0) return UniqueFd();
  // The system call, since glibc has no wrapper before 2.36. The kernel sets
  // close-on-exec by itself.
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
  if (!pidfd) return PosixError(errno, "cannot watch the peer's process");
  pollfd entry{.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
  if (poll(&entry, 1, 0) != 0) {
    return absl::UnavailableError("cannot watch the peer's process: it has closed the connection");
  }
  return pidfd;
}

}  // namespace

absl::StatusOr<PeerCredentials> GetPeerCredentials(const UniqueFd& socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return PosixError(errno, "cannot ask who the peer is");
  }
  return PeerCredentials{.uid = credentials.uid, .gid = credentials.gid, .pid = credentials.pid};
}

absl::StatusOr<UniqueFd> OpenPeerPidfd(const UniqueFd& socket) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) return UniqueFd(fd);
  switch (errno) {
    case ENOPROTOOPT:
      return OpenPidfdByNumber(socket);
    case EINVAL:
      // The process has ended and been waited for.
      return PosixError(ESRCH, "cannot watch the peer's process");
    default:
      return PosixError(errno, "cannot watch the peer's process");
  }
}

}  // namespace heapbroker
