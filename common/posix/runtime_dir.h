// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The directory where a daemon's sockets live, and the right to be the only
// daemon in it.
#ifndef COMMON_POSIX_RUNTIME_DIR_H_
#define COMMON_POSIX_RUNTIME_DIR_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/posix/lock_file.h"
#include "common/posix/unique_fd.h"
#include "common/posix/unix_socket.h"

namespace heapbroker {

// The name of the lock file in a runtime directory.
inline constexpr char kLockFileName[] = "daemon.lock";

// Holds a runtime directory. Whoever holds it may replace sockets in it, because
// their owner must be dead: it would hold the lock. Nobody else unlinks a
// socket, so a second daemon cannot take a live one's place.
//
// Removes the sockets that it made when it ends, then lets go of the lock.
// Move-only; not thread-safe.
class RuntimeDir {
 public:
  // Creates the directory (not its parents) with exactly `mode` where it is
  // missing; one that exists keeps its mode. Each error names the path:
  //   FAILED_PRECONDITION  "already running" with the holder's pid; or the path
  //                        is no directory, or anyone or a group other than
  //                        this process's may write in it, or it belongs to
  //                        another user than this one and root
  //   NOT_FOUND            its parent does not exist
  //   PERMISSION_DENIED    this user may not create it or write in it
  //   INVALID_ARGUMENT     so long that no socket in it could be connected to
  static absl::StatusOr<RuntimeDir> Acquire(const std::string& path, mode_t mode);

  RuntimeDir(RuntimeDir&&) = default;
  RuntimeDir& operator=(RuntimeDir&&) = delete;
  ~RuntimeDir();

  const std::string& path() const { return path_; }

  // Listens on `name` in the directory, after removing the socket that a killed
  // daemon left there. As ListenUnix, and
  //   FAILED_PRECONDITION  what is there is no socket, and is left alone
  absl::StatusOr<UniqueFd> Listen(absl::string_view name, SocketKind kind, mode_t mode);

 private:
  RuntimeDir(std::string path, LockFile lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  LockFile lock_;
  std::vector<std::string> sockets_;  // Paths; empty in what was moved from.
};

}  // namespace heapbroker
#endif  // COMMON_POSIX_RUNTIME_DIR_H_
