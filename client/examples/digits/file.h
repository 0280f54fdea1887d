// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Input files that are read piece by piece, so that bytes can go straight to
// where they are needed, and so that a file that shrinks meanwhile is an error
// (with mmap it would be a SIGBUS).
#ifndef CLIENT_EXAMPLES_DIGITS_FILE_H_
#define CLIENT_EXAMPLES_DIGITS_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace digits {

// A regular file, open for reading. Move-only; closes its descriptor when
// destroyed. Const methods may be called from several threads.
class File {
 public:
  // Errors name the path and what the system said; a directory, pipe or device
  // is INVALID_ARGUMENT.
  static absl::StatusOr<File> Open(const std::string& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }
  // Bytes, as of Open.
  uint64_t size() const { return size_; }

  // Fills `out` from the file's bytes at `offset`. DATA_LOSS when the file ends
  // before that.
  absl::Status ReadAt(uint64_t offset, absl::Span<uint8_t> out) const;

  // An INVALID_ARGUMENT that begins with the path: for what is wrong in the file.
  absl::Status Malformed(absl::string_view what) const;

 private:
  File(std::string path, int fd, uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}

  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace digits
#endif  // CLIENT_EXAMPLES_DIGITS_FILE_H_
