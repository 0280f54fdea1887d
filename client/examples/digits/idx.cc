// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "idx.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "file.h"

namespace digits {
namespace {

constexpr uint8_t kUnsignedByte = 0x08;

uint32_t BigEndian32(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

}  // namespace

absl::StatusOr<IdxArray> ReadIdx(const std::string& path, int rank) {
  absl::StatusOr<File> file = File::Open(path);
  if (!file.ok()) return file.status();

  std::vector<uint8_t> head(4 + 4 * static_cast<size_t>(rank));
  if (absl::Status read = file->ReadAt(0, absl::MakeSpan(head)); !read.ok()) return read;
  if (head[0] != 0 || head[1] != 0 || head[2] != kUnsignedByte || head[3] != rank) {
    return file->Malformed(absl::StrCat("begins with bytes ", head[0], " ", head[1], " ", head[2],
                                        " ", head[3], ", but an IDX file of unsigned bytes with ",
                                        rank, " dimensions begins with 0 0 8 ", rank));
  }

  IdxArray array;
  const uint64_t available = file->size() - head.size();
  uint64_t count = 1;
  bool fits = true;
  for (int i = 0; i < rank; ++i) {
    const uint32_t dimension = BigEndian32(&head[4 + 4 * static_cast<size_t>(i)]);
    array.dimensions.push_back(dimension);
    if (dimension == 0) return file->Malformed(absl::StrCat("dimension ", i, " is 0"));
    // Stops before the product can pass 2^64: `available` is below 2^63.
    if (fits && count > available / dimension) fits = false;
    if (fits) count *= dimension;
  }
  if (!fits || count != available) {
    return file->Malformed(
        absl::StrCat("says that it holds ", absl::StrJoin(array.dimensions, " x "),
                     " bytes after the first ", head.size(), ", but ", available, " follow"));
  }
  array.elements.resize(count);
  if (absl::Status read = file->ReadAt(head.size(), absl::MakeSpan(array.elements)); !read.ok()) {
    return read;
  }
  return array;
}

}  // namespace digits
