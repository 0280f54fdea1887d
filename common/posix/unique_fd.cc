// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "common/posix/posix_error.h"

namespace heapbroker {

void UniqueFd::Reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old < 0) return;
  const int saved_errno = errno;
  // Not retried on EINTR: Linux has let go of the descriptor by then, and
  // another thread may already have been given the number.
  close(old);
  errno = saved_errno;
}

absl::StatusOr<UniqueFd> DuplicateFd(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return PosixError(errno, "cannot duplicate a descriptor");
  return copy;
}

}  // namespace heapbroker
