// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A file whose lock says that somebody is running.
#ifndef COMMON_POSIX_LOCK_FILE_H_
#define COMMON_POSIX_LOCK_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

// Holds the exclusive lock of a file for as long as it lives. The kernel lets go
// of it when the process ends, however that happens, so a file that is left over
// means nothing. The holder's pid stands in the file, for the one who is refused.
//
// The file is never removed: somebody might have it open and lock it, and be
// alone with a lock that nobody else can see.
class LockFile {
 public:
  // Creates the file where it is missing. Does not wait. Each error names it:
  //   FAILED_PRECONDITION  "already running", and the holder's pid
  //   PERMISSION_DENIED    this user may not write it
  //   others               as PosixError
  static absl::StatusOr<LockFile> Acquire(const std::string& path);

 private:
  explicit LockFile(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
};

}  // namespace heapbroker
#endif  // COMMON_POSIX_LOCK_FILE_H_
