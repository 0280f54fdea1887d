// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/posix/posix_error.h"

namespace heapbroker {
namespace {

absl::Status AlreadyRunning(const UniqueFd& fd, const std::string& path) {
  char text[32];
  const ssize_t size = pread(fd.get(), text, sizeof text, 0);
  pid_t pid = 0;
  if (size <= 0 ||
      !absl::SimpleAtoi(absl::StripAsciiWhitespace(absl::string_view(text, size)), &pid)) {
    // It has the lock and has not yet written who it is.
    return absl::FailedPreconditionError(
        absl::StrCat("already running: another process holds ", path,
                     "; stop it first or choose another runtime directory"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("already running: process ", pid, " holds ", path,
                   "; stop it first or choose another runtime directory"));
}

}  // namespace

absl::StatusOr<LockFile> LockFile::Acquire(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!fd) {
    return PosixError(errno, absl::StrCat("cannot open the lock file ", path),
                      "the runtime directory must be this user's to write");
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return AlreadyRunning(fd, path);
    return PosixError(errno, absl::StrCat("cannot lock ", path));
  }
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd.get(), 0) != 0 ||
      pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return PosixError(errno, absl::StrCat("cannot write to the lock file ", path));
  }
  return LockFile(std::move(fd));
}

}  // namespace heapbroker
