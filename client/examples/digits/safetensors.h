// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Reads safetensors files: eight bytes that hold the header's length, little
// endian; the header, a JSON object that maps each tensor's name to its element
// type, shape and range of bytes; and those bytes.
#ifndef CLIENT_EXAMPLES_DIGITS_SAFETENSORS_H_
#define CLIENT_EXAMPLES_DIGITS_SAFETENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "file.h"

namespace digits {

struct Tensor {
  std::string name;
  std::string dtype;  // As in the file: "F32", "BF16", ...
  std::vector<uint64_t> shape;
  uint64_t offset = 0;  // Bytes from the start of the file.
  uint64_t size = 0;    // Bytes: the shape's product times the element's size.
};

// A safetensors file whose header was checked from end to end: every tensor's
// size follows from its shape and lies inside the file, and the tensors cover
// the bytes after the header without a hole or an overlap. The contents stay in
// the file until they are asked for.
class SafetensorsFile {
 public:
  // As the format sets it.
  static constexpr uint64_t kMaxHeaderBytes = 100'000'000;

  // INVALID_ARGUMENT or DATA_LOSS for a file that breaks a rule of the format;
  // the message names the path, the tensor or the byte, and the rule.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  // In the order of their bytes in the file.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  // Null when there is none of that name.
  const Tensor* Find(absl::string_view name) const;

  // Fills `out` with the tensor's bytes from `offset` bytes into it.
  absl::Status Read(const Tensor& tensor, uint64_t offset, absl::Span<uint8_t> out) const;

  // An INVALID_ARGUMENT that begins with the path: for a file that follows the
  // format but does not hold what the caller needs.
  absl::Status Malformed(absl::string_view what) const { return file_.Malformed(what); }

 private:
  SafetensorsFile(File file, std::vector<Tensor> tensors)
      : file_(std::move(file)), tensors_(std::move(tensors)) {}

  File file_;
  std::vector<Tensor> tensors_;
};

}  // namespace digits
#endif  // CLIENT_EXAMPLES_DIGITS_SAFETENSORS_H_
