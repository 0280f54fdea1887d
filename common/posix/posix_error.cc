// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/posix_error.h"

#include <cerrno>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace heapbroker {
namespace {

absl::StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::StatusCode::kPermissionDenied;
    case ENOTDIR:
    case ELOOP:
    case EADDRINUSE:
    case EEXIST:
      return absl::StatusCode::kFailedPrecondition;
    case EINVAL:
    case EBADF:
    case ENAMETOOLONG:
    case EMSGSIZE:
    case ENOTSOCK:
      return absl::StatusCode::kInvalidArgument;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case ETOOMANYREFS:
    case ENOSPC:
      return absl::StatusCode::kResourceExhausted;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case ENOTCONN:
    case ESRCH:
      return absl::StatusCode::kUnavailable;
    case EAGAIN:
    case ETIMEDOUT:
      return absl::StatusCode::kDeadlineExceeded;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status PosixError(int error, absl::string_view what, absl::string_view advice) {
  // std::generic_category, since strerror is not thread-safe.
  std::string text = absl::StrCat(what, ": ", std::generic_category().message(error));
  if (!advice.empty()) absl::StrAppend(&text, "; ", advice);
  return absl::Status(CodeOf(error), text);
}

}  // namespace heapbroker
