// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace digits {

absl::StatusOr<File> File::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe by mistake must not wait for its writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  File file(path, fd, 0);
  struct stat info;
  if (fstat(fd, &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read the size of ", path));
  }
  if (!S_ISREG(info.st_mode)) return file.Malformed("is not a regular file");
  file.size_ = static_cast<uint64_t>(info.st_size);
  return file;
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

absl::Status File::ReadAt(uint64_t offset, absl::Span<uint8_t> out) const {
  if (offset > size_ || out.size() > size_ - offset) {
    return absl::DataLossError(absl::StrCat(path_, ": ends at byte ", size_, ", but ", out.size(),
                                            " bytes are needed from byte ", offset));
  }
  size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        pread(fd_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path_));
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(path_, ": was cut at byte ", offset + done,
                                              " while it was being read; it had ", size_));
    }
    done += static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status File::Malformed(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": ", what));
}

}  // namespace digits
