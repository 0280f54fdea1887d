// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A directory that goes with the test.
#ifndef TESTS_SUPPORT_TEMP_DIR_H_
#define TESTS_SUPPORT_TEMP_DIR_H_

#include <string>

#include "absl/strings/string_view.h"

namespace heapbroker {

// A fresh directory with mode 0700 under $TMPDIR or /tmp; removed with all that
// is in it. The path is short: socket paths may have 107 bytes. Ends the test
// program if it cannot be made.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string File(absl::string_view name) const;

 private:
  std::string path_;
};

}  // namespace heapbroker
#endif  // TESTS_SUPPORT_TEMP_DIR_H_
