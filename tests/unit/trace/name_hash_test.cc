// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/name_hash.h"

#include <string>

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

// The key of the authors of SipHash in their test vectors: 00 01 02 ... 0f.
constexpr NameHashKey kPublishedKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

TEST(NameHashTest, GivesThePublishedHashes) {
  std::string text;
  EXPECT_EQ(HashName(kPublishedKey, text), 0x726fdb47dd0e0e31u);
  for (char c = 0; c < 15; ++c) text.push_back(c);
  EXPECT_EQ(HashName(kPublishedKey, text), 0xa129ca6149be45e5u);
}

TEST(NameHashTest, DiffersWithEveryRecording) {
  const NameHashKey one = RandomNameHashKey();
  EXPECT_EQ(HashName(one, "weights"), HashName(one, "weights"));
  EXPECT_NE(HashName(one, "weights"), HashName(one, "weight"));
  EXPECT_NE(HashName(one, "weights"), HashName(RandomNameHashKey(), "weights"));
}

}  // namespace
}  // namespace heapbroker
