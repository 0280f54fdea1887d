// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/checksum.h"

#include <string>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

TEST(ChecksumTest, IsXxh3OfTheBytes) {
  // From xxhsum -H2 of the same input.
  const Checksum empty = ChecksumOf(nullptr, Bytes(0));
  EXPECT_EQ(empty.high, 0x99aa06d3014798d8u);
  EXPECT_EQ(empty.low, 0x6001c324468d497fu);
}

TEST(ChecksumTest, IsTheSameForAnyPieces) {
  std::string data(100'000, 'x');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 31);
  const Checksum whole = ChecksumOf(data.data(), Bytes(data.size()));
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, size_t{99'999}}) {
    Checksummer checksummer;
    for (size_t at = 0; at < data.size(); at += piece) {
      checksummer.Add(data.data() + at, Bytes(std::min(piece, data.size() - at)));
    }
    checksummer.Add(nullptr, Bytes(0));
    EXPECT_EQ(checksummer.Finish(), whole) << piece;
  }
}

TEST(ChecksumTest, ChangesWithOneByte) {
  std::string data(1000, 'x');
  const Checksum before = ChecksumOf(data.data(), Bytes(data.size()));
  data[500] = 'y';
  EXPECT_FALSE(ChecksumOf(data.data(), Bytes(data.size())) == before);
}

}  // namespace
}  // namespace heapbroker
