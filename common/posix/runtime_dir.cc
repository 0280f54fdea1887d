// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/posix/runtime_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/posix/posix_error.h"

namespace heapbroker {
namespace {

// Room for the names of the sockets behind the directory's.
constexpr size_t kMaxRuntimeDirBytes = kMaxSocketPathBytes - 20;

// True when it was made, false when something is there already.
absl::StatusOr<bool> MakeDirectory(const std::string& path, mode_t mode) {
  // Closed to others until the mode is set, since mkdir subtracts the umask.
  if (mkdir(path.c_str(), mode & 0700) != 0) {
    if (errno == EEXIST) return false;
    return PosixError(errno, absl::StrCat("cannot create the runtime directory ", path),
                      errno == ENOENT ? "create its parent directory first"
                                      : "choose a directory that this user may create");
  }
  if (chmod(path.c_str(), mode) != 0) {
    return PosixError(errno, absl::StrCat("cannot set the mode of ", path));
  }
  return true;
}

// In a directory that others own or may write in, they could put their own
// socket in the place of the daemon's. The daemon's own group may write: who is in
// it was chosen by whoever runs the daemon, and where each user has a group of
// their own, a umask of 002 makes such directories. Any other group may not.
absl::Status CheckDirectory(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    return PosixError(errno, absl::StrCat("cannot use the runtime directory ", path));
  }
  if (!S_ISDIR(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("runtime directory ", path, " is not a directory; choose another path"));
  }
  if (info.st_uid != geteuid() && info.st_uid != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("runtime directory ", path, " belongs to uid ", info.st_uid,
                     " and this is uid ", geteuid(), "; choose a directory of this user's"));
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("runtime directory ", path,
                     " may be written by anyone; remove that right or choose another"));
  }
  if ((info.st_mode & S_IWGRP) != 0 && info.st_gid != getegid()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "runtime directory ", path, " may be written by group ", info.st_gid, " and this is group ",
        getegid(), "; remove that right (chmod g-w) or choose another"));
  }
  return absl::OkStatus();
}

absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return PosixError(errno, absl::StrCat("cannot look at ", path));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen on ", path, ": what is there is not a socket; move it away"));
  }
  if (unlink(path.c_str()) != 0) {
    return PosixError(errno, absl::StrCat("cannot remove the stale socket ", path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RuntimeDir> RuntimeDir::Acquire(const std::string& path, mode_t mode) {
  if (path.empty() || path.size() > kMaxRuntimeDirBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("runtime directory \"", path, "\" has ", path.size(), " bytes; 1 to ",
                     kMaxRuntimeDirBytes, " are possible, for a socket's address has little room"));
  }
  HB_ASSIGN_OR_RETURN(const bool made, MakeDirectory(path, mode));
  if (!made) HB_RETURN_IF_ERROR(CheckDirectory(path));
  HB_ASSIGN_OR_RETURN(LockFile lock, LockFile::Acquire(absl::StrCat(path, "/", kLockFileName)));
  return RuntimeDir(path, std::move(lock));
}

RuntimeDir::~RuntimeDir() {
  for (const std::string& socket : sockets_) unlink(socket.c_str());
}

absl::StatusOr<UniqueFd> RuntimeDir::Listen(absl::string_view name, SocketKind kind, mode_t mode) {
  const std::string path = absl::StrCat(path_, "/", name);
  HB_RETURN_IF_ERROR(RemoveStaleSocket(path));
  HB_ASSIGN_OR_RETURN(UniqueFd fd, ListenUnix(path, kind, mode));
  sockets_.push_back(path);
  return fd;
}

}  // namespace heapbroker
