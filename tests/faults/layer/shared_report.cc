// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/layer/shared_report.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace heapbroker::faults {

absl::StatusOr<std::unique_ptr<SharedReport>> SharedReport::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("making ", path));
  void* bytes = MAP_FAILED;
  if (ftruncate(fd, kCapacity) == 0) {
    bytes = mmap(nullptr, kCapacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  close(fd);
  if (bytes == MAP_FAILED) return absl::ErrnoToStatus(error, absl::StrCat("mapping ", path));
  return std::unique_ptr<SharedReport>(new SharedReport(static_cast<char*>(bytes)));
}

SharedReport::~SharedReport() { munmap(bytes_, kCapacity); }

void SharedReport::Write(absl::string_view text) {
  text = text.substr(0, kCapacity);
  std::memcpy(bytes_, text.data(), text.size());
  if (text.size() < length_) std::memset(bytes_ + text.size(), 0, length_ - text.size());
  length_ = text.size();
}

}  // namespace heapbroker::faults
