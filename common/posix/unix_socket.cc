// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/unix_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/posix/posix_error.h"

namespace heapbroker {
namespace {

static_assert(kMaxSocketPathBytes == sizeof(sockaddr_un::sun_path) - 1);

// Connections that wait to be accepted; the kernel cuts it to its own limit.
constexpr int kBacklog = 1024;

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty()) return absl::InvalidArgumentError("a socket path must not be empty");
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("a socket path must not contain a zero byte");
  }
  if (path.size() > kMaxSocketPathBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("socket path ", path, " has ", path.size(), " bytes and at most ",
                     kMaxSocketPathBytes, " are possible; choose a shorter runtime directory"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

absl::StatusOr<UniqueFd> MakeSocket(SocketKind kind, int flags) {
  const int type = kind == SocketKind::kStream ? SOCK_STREAM : SOCK_SEQPACKET;
  UniqueFd fd(socket(AF_UNIX, type | SOCK_CLOEXEC | flags, 0));
  if (!fd) return PosixError(errno, "cannot make a socket");
  return fd;
}

// Both connect and send on a unix socket wait at most this long; zero means for
// ever, so anything shorter than what the kernel can tell apart is rounded up.
absl::Status SetSendTimeout(const UniqueFd& fd, timeval timeout) {
  if (setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) != 0) {
    return PosixError(errno, "cannot set a socket's timeout");
  }
  return absl::OkStatus();
}

absl::Status ConnectError(int error, const std::string& path) {
  const std::string what = absl::StrCat("cannot connect to ", path);
  switch (error) {
    case ENOENT:
      return PosixError(error, what, "is the daemon running with this runtime directory?");
    case ECONNREFUSED:
      return PosixError(error, what, "nobody listens there; start the daemon");
    case EACCES:
    case EPERM:
      return PosixError(error, what, "the socket or its directory is not open to this user");
    case EPROTOTYPE:
      return absl::FailedPreconditionError(
          absl::StrCat(what, ": it is a socket of another kind; check the path"));
    case EAGAIN:
      return absl::DeadlineExceededError(
          absl::StrCat(what, ": the daemon accepts no connections in time; try again"));
    default:
      return PosixError(error, what);
  }
}

absl::Status BindError(int error, const std::string& path) {
  const std::string what = absl::StrCat("cannot listen on ", path);
  switch (error) {
    case EADDRINUSE:
      return PosixError(error, what, "something is there already; move it away");
    case ENOENT:
      return PosixError(error, what, "its directory does not exist; create it");
    case EACCES:
    case EPERM:
    case EROFS:
      return PosixError(error, what, "this user may not create files there");
    default:
      return PosixError(error, what);
  }
}

absl::Status WaitFor(short events, const UniqueFd& socket, absl::Duration timeout,
                     const UniqueFd* interrupt) {
  const absl::Duration end = SteadyNow() + timeout;
  while (true) {
    const int64_t left = std::clamp<int64_t>(
        absl::ToInt64Milliseconds(absl::Ceil(end - SteadyNow(), absl::Milliseconds(1))), 0,
        std::numeric_limits<int>::max());
    // A negative descriptor is passed over.
    pollfd entries[] = {
        {.fd = socket.get(), .events = events, .revents = 0},
        {.fd = interrupt != nullptr ? interrupt->get() : -1, .events = POLLIN, .revents = 0}};
    const int ready =
        poll(entries, 2, timeout == absl::InfiniteDuration() ? -1 : static_cast<int>(left));
    if (entries[0].revents != 0 && ready > 0) return absl::OkStatus();
    if (ready > 0) return absl::CancelledError("the wait for a socket was interrupted");
    if (ready < 0 && errno != EINTR) return PosixError(errno, "cannot wait for a socket");
    if (ready == 0 && SteadyNow() >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat("no answer within ", absl::FormatDuration(timeout)));
    }
  }
}

}  // namespace

absl::StatusOr<UniqueFd> ConnectUnix(const std::string& path, SocketKind kind,
                                     absl::Duration timeout) {
  HB_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  HB_ASSIGN_OR_RETURN(UniqueFd fd, MakeSocket(kind, 0));
  const absl::Duration at_least = std::max(timeout, absl::Milliseconds(1));
  if (at_least < absl::Hours(1)) {
    HB_RETURN_IF_ERROR(SetSendTimeout(fd, absl::ToTimeval(at_least)));
  }
  int result;
  do {
    result = connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return ConnectError(errno, path);
  HB_RETURN_IF_ERROR(SetSendTimeout(fd, timeval{}));
  return fd;
}

absl::StatusOr<UniqueFd> ListenUnix(const std::string& path, SocketKind kind, mode_t mode) {
  HB_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(path));
  HB_ASSIGN_OR_RETURN(UniqueFd fd, MakeSocket(kind, SOCK_NONBLOCK));
  // The file takes the mode of the unbound socket, less the umask: so it is at
  // no moment more open than asked. What the umask took is added afterwards.
  if (fchmod(fd.get(), mode) != 0) return PosixError(errno, "cannot set a socket's mode");
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return BindError(errno, path);
  }
  if (chmod(path.c_str(), mode) != 0 || listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    unlink(path.c_str());
    return BindError(error, path);
  }
  return fd;
}

absl::StatusOr<UniqueFd> AcceptUnix(const UniqueFd& listener) {
  UniqueFd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd) return fd;
  switch (errno) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
      return UniqueFd();
    default:
      return PosixError(errno, "cannot accept a connection");
  }
}

absl::Status WaitReadable(const UniqueFd& socket, absl::Duration timeout,
                          const UniqueFd* interrupt) {
  return WaitFor(POLLIN | POLLRDHUP, socket, timeout, interrupt);
}

absl::Status WaitForHangUp(const UniqueFd& socket, absl::Duration timeout,
                           const UniqueFd* interrupt) {
  return WaitFor(POLLRDHUP, socket, timeout, interrupt);
}

}  // namespace heapbroker
