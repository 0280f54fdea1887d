// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// errno as a status.
#ifndef COMMON_POSIX_POSIX_ERROR_H_
#define COMMON_POSIX_POSIX_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace heapbroker {

// "`what`: `text of error`[; `advice`]", with the code that tells the caller
// what to do next:
//   NOT_FOUND            ENOENT
//   PERMISSION_DENIED    EACCES, EPERM, EROFS
//   FAILED_PRECONDITION  ENOTDIR, ELOOP, EADDRINUSE, EEXIST
//   INVALID_ARGUMENT     EINVAL, EBADF, ENAMETOOLONG, EMSGSIZE, ENOTSOCK
//   RESOURCE_EXHAUSTED   EMFILE, ENFILE, ENOMEM, ENOBUFS, ETOOMANYREFS, ENOSPC
//   UNAVAILABLE          ECONNREFUSED, ECONNRESET, EPIPE, ENOTCONN, ESRCH
//   DEADLINE_EXCEEDED    EAGAIN, ETIMEDOUT
//   INTERNAL             any other
absl::Status PosixError(int error, absl::string_view what, absl::string_view advice = "");

}  // namespace heapbroker
#endif  // COMMON_POSIX_POSIX_ERROR_H_
