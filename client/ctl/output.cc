// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

namespace heapbroker {

absl::Status WriteOutput(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return absl::OkStatus();
  return absl::DataLossError("cannot write to standard output");
}

std::optional<size_t> OutputRows() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
    return std::nullopt;
  }
  // A terminal that does not know, as over a serial line, is taken for the usual one.
  constexpr size_t kUsualRows = 24;
  return size.ws_row == 0 ? kUsualRows : size_t{size.ws_row};
}

}  // namespace heapbroker
