// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A report that tests read while the process that writes it runs.
#ifndef TESTS_FAULTS_LAYER_SHARED_REPORT_H_
#define TESTS_FAULTS_LAYER_SHARED_REPORT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace heapbroker::faults {

// A file mapped into memory: writing takes no descriptor and keeps none open, since
// tests count them and take them away, and what was written is there however the
// process ends. A reader that meets a half-written text tells by its ends and
// reads again. Not thread-safe.
class SharedReport {
 public:
  // Makes the file anew. The errors are the system's.
  static absl::StatusOr<std::unique_ptr<SharedReport>> Create(const std::string& path);
  ~SharedReport();
  SharedReport(const SharedReport&) = delete;
  SharedReport& operator=(const SharedReport&) = delete;

  // Replaces the text; what is beyond kCapacity is cut off.
  void Write(absl::string_view text);

  static constexpr size_t kCapacity = size_t{64} << 10;

 private:
  explicit SharedReport(char* bytes) : bytes_(bytes) {}

  char* const bytes_;  // kCapacity of them; zeros behind the text.
  size_t length_ = 0;
};

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_LAYER_SHARED_REPORT_H_
