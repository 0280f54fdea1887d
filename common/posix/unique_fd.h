// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The owner of a file descriptor.
#ifndef COMMON_POSIX_UNIQUE_FD_H_
#define COMMON_POSIX_UNIQUE_FD_H_

#include <utility>

#include "absl/status/statusor.h"

namespace heapbroker {

// Owns at most one descriptor and closes it. Move-only; not thread-safe.
class UniqueFd {
 public:
  UniqueFd() = default;  // Owns nothing.
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd() { Reset(); }

  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) Reset(other.Release());
    return *this;
  }
  UniqueFd(const UniqueFd&) = delete;
  UniqueFd& operator=(const UniqueFd&) = delete;

  // Borrowed; -1 where nothing is owned.
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  explicit operator bool() const { return valid(); }

  // Gives the descriptor up without closing it.
  [[nodiscard]] int Release() { return std::exchange(fd_, -1); }
  // Closes what is owned and owns `fd` from here on. errno is left as it was.
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

// Another descriptor of the same open file, with close-on-exec. `fd` is
// borrowed.
//   RESOURCE_EXHAUSTED  the process is at its descriptor limit
//   INVALID_ARGUMENT    `fd` is not open
absl::StatusOr<UniqueFd> DuplicateFd(int fd);

}  // namespace heapbroker
#endif  // COMMON_POSIX_UNIQUE_FD_H_
