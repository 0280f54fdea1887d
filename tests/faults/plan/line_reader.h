// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One line of a plan, word by word.
#ifndef TESTS_FAULTS_PLAN_LINE_READER_H_
#define TESTS_FAULTS_PLAN_LINE_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "heapbroker/units.h"

namespace heapbroker::faults {

// Words are parted by blanks; one in double quotes may hold them; # begins a
// comment. All errors are INVALID_ARGUMENT, begin with "line L, column C: ", and
// name what is allowed there. Not thread-safe.
class LineReader {
 public:
  // `number` counts from 1. The error: a quote that does not end.
  static absl::StatusOr<LineReader> Create(absl::string_view line, size_t number);

  bool AtEnd() const { return next_ == words_.size(); }
  // The next word. The error, where there is none, says that `what` is missing.
  absl::StatusOr<std::string> Word(absl::string_view what);
  absl::StatusOr<uint64_t> Number(absl::string_view what, uint64_t max);
  absl::StatusOr<Bytes> Size(absl::string_view what);
  // The error: a word is left.
  absl::Status End() const;

  // About the word that was read last, `offset` bytes into it.
  absl::Status Error(absl::string_view why, size_t offset = 0) const;
  // `status`, said about the word that was read last; OK stays OK.
  absl::Status At(const absl::Status& status) const;

 private:
  struct Token {
    std::string text;
    size_t column;
  };
  explicit LineReader(size_t number) : number_(number) {}
  absl::Status Split(absl::string_view line);
  absl::Status ErrorAt(size_t column, absl::string_view why) const;

  size_t number_;
  std::vector<Token> words_;
  size_t next_ = 0;
  size_t end_column_ = 1;
};

}  // namespace heapbroker::faults
#endif  // TESTS_FAULTS_PLAN_LINE_READER_H_
