// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "safetensors.h"

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "safetensors_header.h"

namespace digits {
namespace {

constexpr uint64_t kLengthBytes = 8;

uint64_t LittleEndian64(const std::array<uint8_t, kLengthBytes>& bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) value |= uint64_t{bytes[i]} << (8 * i);
  return value;
}

}  // namespace

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  absl::StatusOr<File> file = File::Open(path);
  if (!file.ok()) return file.status();

  std::array<uint8_t, kLengthBytes> length_bytes;
  absl::Status read = file->ReadAt(0, absl::MakeSpan(length_bytes));
  if (!read.ok()) return read;
  const uint64_t length = LittleEndian64(length_bytes);
  if (length > kMaxHeaderBytes) {
    return file->Malformed(absl::StrCat("says that its header has ", length,
                                        " bytes; the format allows at most ", kMaxHeaderBytes));
  }
  const uint64_t available = file->size() - kLengthBytes;
  if (length > available) {
    return file->Malformed(absl::StrCat("says that its header has ", length, " bytes, but only ",
                                        available, " follow"));
  }
  std::string header(length, '\0');
  read = file->ReadAt(kLengthBytes,
                      absl::MakeSpan(reinterpret_cast<uint8_t*>(header.data()), header.size()));
  if (!read.ok()) return read;
  absl::StatusOr<std::vector<Tensor>> tensors =
      ParseSafetensorsHeader(header, kLengthBytes + length, available - length);
  if (!tensors.ok()) return file->Malformed(tensors.status().message());
  return SafetensorsFile(*std::move(file), *std::move(tensors));
}

const Tensor* SafetensorsFile::Find(absl::string_view name) const {
  for (const Tensor& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

absl::Status SafetensorsFile::Read(const Tensor& tensor, uint64_t offset,
                                   absl::Span<uint8_t> out) const {
  if (offset > tensor.size || out.size() > tensor.size - offset) {
    return absl::OutOfRangeError(absl::StrCat(path(), ": tensor \"", tensor.name, "\" has ",
                                              tensor.size, " bytes, but ", out.size(),
                                              " were asked for from its byte ", offset));
  }
  return file_.ReadAt(tensor.offset + offset, out);
}

}  // namespace digits
