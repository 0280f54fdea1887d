// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/plan/line_reader.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/byte_size.h"
#include "common/base/status_macros.h"

namespace heapbroker::faults {

absl::StatusOr<LineReader> LineReader::Create(absl::string_view line, size_t number) {
  LineReader reader(number);
  HB_RETURN_IF_ERROR(reader.Split(line));
  return reader;
}

absl::Status LineReader::Split(absl::string_view line) {
  size_t at = 0;
  while (true) {
    while (at < line.size() && absl::ascii_isspace(static_cast<unsigned char>(line[at]))) ++at;
    if (at == line.size() || line[at] == '#') break;
    const size_t begin = at;
    if (line[begin] == '"') {
      const size_t end = line.find('"', begin + 1);
      if (end == absl::string_view::npos) {
        return ErrorAt(begin + 1, "this quote does not end on its line");
      }
      words_.push_back({std::string(line.substr(begin + 1, end - begin - 1)), begin + 1});
      at = end + 1;
    } else {
      while (at < line.size() && !absl::ascii_isspace(static_cast<unsigned char>(line[at]))) ++at;
      words_.push_back({std::string(line.substr(begin, at - begin)), begin + 1});
    }
    end_column_ = at + 1;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> LineReader::Word(absl::string_view what) {
  if (AtEnd()) return ErrorAt(end_column_, absl::StrCat(what, " is missing here"));
  return words_[next_++].text;
}

absl::StatusOr<uint64_t> LineReader::Number(absl::string_view what, uint64_t max) {
  HB_ASSIGN_OR_RETURN(const std::string word, Word(what));
  uint64_t number = 0;
  if (absl::SimpleAtoi(word, &number) && number <= max) return number;
  return Error(
      absl::StrCat("\"", word, "\" is no ", what, "; allowed are whole numbers from 0 to ", max));
}

absl::StatusOr<Bytes> LineReader::Size(absl::string_view what) {
  HB_ASSIGN_OR_RETURN(const std::string word, Word(what));
  absl::StatusOr<Bytes> size = ParseByteSize(word);
  if (!size.ok()) return At(size.status());
  return size;
}

absl::Status LineReader::End() const {
  if (AtEnd()) return absl::OkStatus();
  return ErrorAt(words_[next_].column,
                 absl::StrCat("\"", words_[next_].text, "\" is one word too many"));
}

absl::Status LineReader::Error(absl::string_view why, size_t offset) const {
  return ErrorAt(words_[next_ - 1].column + offset, why);
}

absl::Status LineReader::At(const absl::Status& status) const {
  return status.ok() ? status : Error(status.message());
}

absl::Status LineReader::ErrorAt(size_t column, absl::string_view why) const {
  return absl::InvalidArgumentError(absl::StrCat("line ", number_, ", column ", column, ": ", why));
}

}  // namespace heapbroker::faults
