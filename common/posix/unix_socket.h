// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Unix-domain sockets with a path. Every descriptor has close-on-exec.
#ifndef COMMON_POSIX_UNIX_SOCKET_H_
#define COMMON_POSIX_UNIX_SOCKET_H_

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

enum class SocketKind {
  kStream,     // SOCK_STREAM: bytes, for gRPC.
  kSeqPacket,  // SOCK_SEQPACKET: whole packets in order, for the session socket.
};

// The longest path that fits into a socket address (sun_path, less its zero).
inline constexpr size_t kMaxSocketPathBytes = 107;

// Connects; the returned socket is a blocking one. `timeout` bounds the wait for
// a listener whose backlog is full. Each error names the path:
//   NOT_FOUND            nothing is there: no daemon has run with this directory
//   UNAVAILABLE          a socket is there and nobody listens
//   PERMISSION_DENIED    the directory or the socket is not this user's to use
//   INVALID_ARGUMENT     the path is empty, too long or has a zero byte in it
//   FAILED_PRECONDITION  something on the path is not a directory, or what is
//                        there is a socket of another kind
//   DEADLINE_EXCEEDED    the listener accepted nobody for `timeout`
absl::StatusOr<UniqueFd> ConnectUnix(const std::string& path, SocketKind kind,
                                     absl::Duration timeout);

// Binds and listens; the returned socket is a non-blocking one. The file gets
// exactly `mode` whatever the umask, and never more than that. What is already
// at `path` is not touched; see RuntimeDir::Listen for replacing a socket that a
// killed daemon left.
//   FAILED_PRECONDITION  something is at `path`
//   others               as ConnectUnix
absl::StatusOr<UniqueFd> ListenUnix(const std::string& path, SocketKind kind, mode_t mode);

// The next connection, as a non-blocking socket, or an empty UniqueFd when none
// is waiting, or the one that waited has gone.
//   RESOURCE_EXHAUSTED  descriptors or memory ran out; the connection still
//                       waits, so try again later and not at once
//   INTERNAL            anything else
absl::StatusOr<UniqueFd> AcceptUnix(const UniqueFd& listener);

// Waits until `socket` can be read or its peer has gone. `interrupt`, where there is
// one, ends the wait as soon as it can be read.
//   DEADLINE_EXCEEDED  neither happened within `timeout`
//   CANCELLED          by `interrupt`
absl::Status WaitReadable(const UniqueFd& socket, absl::Duration timeout,
                          const UniqueFd* interrupt = nullptr);

// The same until its peer has gone, or either side has shut it down, whatever there is
// to read: packets that arrive wake nobody up.
absl::Status WaitForHangUp(const UniqueFd& socket, absl::Duration timeout,
                           const UniqueFd* interrupt = nullptr);

}  // namespace heapbroker
#endif  // COMMON_POSIX_UNIX_SOCKET_H_
