// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace digits {
namespace {

using nlohmann::json;

constexpr absl::string_view kMetadata = "__metadata__";

// The file's author chose the text: shown without control characters, and short.
std::string Quoted(absl::string_view text) {
  constexpr size_t kLimit = 100;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kLimit)),
                      text.size() > kLimit ? "...\"" : "\"");
}

absl::Status Wrong(absl::string_view what) { return absl::InvalidArgumentError(what); }

absl::Status WrongTensor(absl::string_view name, absl::string_view what) {
  return Wrong(absl::StrCat("tensor ", Quoted(name), ": ", what));
}

// Bytes of one element; empty for a type that the format does not have.
std::optional<uint64_t> ElementBytes(absl::string_view dtype) {
  struct Size {
    absl::string_view dtype;
    uint64_t bytes;
  };
  static constexpr Size kSizes[] = {{"BOOL", 1},    {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1},
                                    {"F8_E4M3", 1}, {"U16", 2}, {"I16", 2}, {"F16", 2},
                                    {"BF16", 2},    {"U32", 4}, {"I32", 4}, {"F32", 4},
                                    {"U64", 8},     {"I64", 8}, {"F64", 8}};
  for (const Size& size : kSizes) {
    if (size.dtype == dtype) return size.bytes;
  }
  return std::nullopt;
}

// Sees the header's tokens before a document is built of them. A JSON document
// keeps the last of two equal keys without a word, and takes any depth; here
// both are errors. Depth 1 is the header, 2 a tensor, 3 its shape.
class TokenCheck : public nlohmann::json_sax<json> {
 public:
  explicit TokenCheck(uint64_t header_start) : header_start_(header_start) {}

  const absl::Status& status() const { return status_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }

  bool start_object(size_t) override {
    keys_.emplace_back();
    return Enter();
  }
  bool end_object() override {
    keys_.pop_back();
    --depth_;
    return true;
  }
  bool start_array(size_t) override { return Enter(); }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool key(string_t& name) override {
    if (depth_ == 1) tensor_ = name;
    if (keys_.back().insert(name).second) return true;
    status_ = depth_ == 1 ? Wrong(absl::StrCat("the header names ", Quoted(name), " twice"))
                          : WrongTensor(tensor_, absl::StrCat("gives ", Quoted(name), " twice"));
    return false;
  }

  bool parse_error(size_t position, const std::string& last_token,
                   const json::exception&) override {
    status_ = Wrong(absl::StrCat("the header is not valid JSON at byte ",
                                 header_start_ + (position == 0 ? 0 : position - 1), ", near ",
                                 Quoted(last_token)));
    return false;
  }

 private:
  bool Enter() {
    if (++depth_ <= 3) return true;
    status_ = WrongTensor(tensor_, "nests values deeper than the format does");
    return false;
  }

  const uint64_t header_start_;
  int depth_ = 0;
  std::string tensor_;
  std::vector<std::set<std::string>> keys_;
  absl::Status status_;
};

absl::StatusOr<json> ParseJson(absl::string_view header, uint64_t header_start) {
  if (header.empty() || header[0] != '{') {
    return Wrong(absl::StrCat("the header does not begin with { at byte ", header_start));
  }
  // The parser takes a zero byte for the end of its input.
  if (const size_t zero = header.find('\0'); zero != absl::string_view::npos) {
    return Wrong(absl::StrCat("the header has a zero byte at byte ", header_start + zero));
  }
  TokenCheck check(header_start);
  if (!json::sax_parse(header.begin(), header.end(), &check)) return check.status();
  return json::parse(header.begin(), header.end(), /*cb=*/nullptr, /*allow_exceptions=*/false);
}

absl::Status CheckMetadata(const json& value) {
  const bool strings = value.is_object() && std::all_of(value.begin(), value.end(),
                                                        [](auto& v) { return v.is_string(); });
  if (strings) return absl::OkStatus();
  return Wrong("__metadata__ is not an object of strings");
}

absl::StatusOr<std::vector<uint64_t>> WholeNumbers(absl::string_view tensor, absl::string_view key,
                                                   const json& value) {
  std::vector<uint64_t> numbers;
  if (!value.is_array()) return WrongTensor(tensor, absl::StrCat(key, " is not an array"));
  for (const json& item : value) {
    if (!item.is_number_unsigned()) {
      return WrongTensor(tensor, absl::StrCat(key,
                                              " holds something other than whole numbers "
                                              "from 0 to 2^64-1"));
    }
    numbers.push_back(item.get<uint64_t>());
  }
  return numbers;
}

std::string Shown(const std::vector<uint64_t>& numbers) {
  constexpr size_t kLimit = 8;
  const size_t shown = std::min(kLimit, numbers.size());
  return absl::StrCat("[", absl::StrJoin(numbers.begin(), numbers.begin() + shown, ", "),
                      shown < numbers.size() ? ", ...]" : "]");
}

// Bytes that elements of `element_bytes` take in `shape`; empty past 2^64-1.
std::optional<uint64_t> ShapeBytes(const std::vector<uint64_t>& shape, uint64_t element_bytes) {
  // A zero anywhere makes the product 0, also where the others would pass 2^64.
  if (std::count(shape.begin(), shape.end(), 0u) > 0) return 0;
  uint64_t bytes = element_bytes;
  for (const uint64_t dimension : shape) {
    if (__builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  }
  return bytes;
}

// `offsets` count from the end of the header, as in the file.
absl::Status CheckRange(const Tensor& tensor, const std::vector<uint64_t>& offsets,
                        uint64_t element_bytes, uint64_t data_size) {
  if (offsets.size() != 2 || offsets[0] > offsets[1]) {
    return WrongTensor(tensor.name, absl::StrCat("data_offsets ", Shown(offsets),
                                                 " is not [begin, end] with begin <= end"));
  }
  if (offsets[1] > data_size) {
    return WrongTensor(tensor.name, absl::StrCat("data_offsets ", Shown(offsets),
                                                 " pass the end of the file, which has ", data_size,
                                                 " bytes after the header"));
  }
  const std::optional<uint64_t> bytes = ShapeBytes(tensor.shape, element_bytes);
  if (!bytes) {
    return WrongTensor(tensor.name, absl::StrCat("shape ", Shown(tensor.shape), " of ",
                                                 tensor.dtype, " takes more than 2^64-1 bytes"));
  }
  if (*bytes != offsets[1] - offsets[0]) {
    return WrongTensor(tensor.name,
                       absl::StrCat("shape ", Shown(tensor.shape), " of ", tensor.dtype, " takes ",
                                    *bytes, " bytes, but data_offsets ", Shown(offsets), " hold ",
                                    offsets[1] - offsets[0]));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> ParseTensor(const std::string& name, const json& value, uint64_t data_start,
                                   uint64_t data_size) {
  const bool complete = value.is_object() && value.size() == 3 && value.contains("dtype") &&
                        value.contains("shape") && value.contains("data_offsets");
  if (!complete) {
    return WrongTensor(name, "is not an object of exactly dtype, shape and data_offsets");
  }
  Tensor tensor;
  tensor.name = name;
  const std::string* dtype = value["dtype"].get_ptr<const std::string*>();
  if (dtype == nullptr) return WrongTensor(name, "dtype is not a string");
  tensor.dtype = *dtype;
  const std::optional<uint64_t> element_bytes = ElementBytes(tensor.dtype);
  if (!element_bytes) {
    return WrongTensor(name,
                       absl::StrCat("dtype ", Quoted(tensor.dtype), " is not one of the format"));
  }
  absl::StatusOr<std::vector<uint64_t>> shape = WholeNumbers(name, "shape", value["shape"]);
  if (!shape.ok()) return shape.status();
  tensor.shape = *std::move(shape);
  absl::StatusOr<std::vector<uint64_t>> offsets =
      WholeNumbers(name, "data_offsets", value["data_offsets"]);
  if (!offsets.ok()) return offsets.status();
  absl::Status range = CheckRange(tensor, *offsets, *element_bytes, data_size);
  if (!range.ok()) return range;
  tensor.offset = data_start + (*offsets)[0];
  tensor.size = (*offsets)[1] - (*offsets)[0];
  return tensor;
}

// `tensors` in the order of their bytes.
absl::Status CheckCoverage(const std::vector<Tensor>& tensors, uint64_t data_start,
                           uint64_t data_size) {
  uint64_t covered = data_start;
  for (const Tensor& tensor : tensors) {
    if (tensor.offset != covered) {
      return WrongTensor(tensor.name, absl::StrCat("begins at byte ", tensor.offset,
                                                   tensor.offset < covered
                                                       ? ", inside the tensor before it, which ends"
                                                       : ", with a hole after what ends",
                                                   " at byte ", covered));
    }
    covered += tensor.size;
  }
  if (covered == data_start + data_size) return absl::OkStatus();
  return Wrong(absl::StrCat("the last tensor ends at byte ", covered, ", but the file at byte ",
                            data_start + data_size));
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> ParseSafetensorsHeader(absl::string_view header,
                                                           uint64_t data_start,
                                                           uint64_t data_size) {
  absl::StatusOr<json> document = ParseJson(header, data_start - header.size());
  if (!document.ok()) return document.status();
  std::vector<Tensor> tensors;
  for (const auto& [name, value] : document->items()) {
    if (name == kMetadata) {
      if (absl::Status status = CheckMetadata(value); !status.ok()) return status;
      continue;
    }
    absl::StatusOr<Tensor> tensor = ParseTensor(name, value, data_start, data_size);
    if (!tensor.ok()) return tensor.status();
    tensors.push_back(*std::move(tensor));
  }
  // Empty tensors before the one that begins at the same byte.
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::tie(a.offset, a.size, a.name) < std::tie(b.offset, b.size, b.name);
  });
  if (absl::Status status = CheckCoverage(tensors, data_start, data_size); !status.ok()) {
    return status;
  }
  return tensors;
}

}  // namespace digits
