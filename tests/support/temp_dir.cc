// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/temp_dir.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace heapbroker {

TempDir::TempDir() {
  const char* base = std::getenv("TMPDIR");
  path_ = absl::StrCat(base != nullptr && *base != '\0' ? base : "/tmp", "/hb-XXXXXX");
  if (mkdtemp(path_.data()) == nullptr) {
    std::perror("mkdtemp");
    std::abort();
  }
}

TempDir::~TempDir() {
  std::error_code ignored;  // A test that changed permissions inside cleans up itself.
  std::filesystem::remove_all(path_, ignored);
}

std::string TempDir::File(absl::string_view name) const { return absl::StrCat(path_, "/", name); }

}  // namespace heapbroker
