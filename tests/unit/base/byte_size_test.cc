// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "common/base/byte_size.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

TEST(ByteSizeTest, TakesEveryUnit) {
  EXPECT_EQ(*ParseByteSize("17"), Bytes(17));
  EXPECT_EQ(*ParseByteSize("17b"), Bytes(17));
  EXPECT_EQ(*ParseByteSize("2kb"), Bytes(2000));
  EXPECT_EQ(*ParseByteSize("2KiB"), KiB(2));
  EXPECT_EQ(*ParseByteSize("3 MIB"), MiB(3));
  EXPECT_EQ(*ParseByteSize("1tb"), Bytes(1000000000000));
  EXPECT_EQ(*ParseByteSize("1tib"), GiB(1024));
  EXPECT_EQ(*ParseByteSize("18446744073709551615"), Bytes::Max());
}

TEST(ByteSizeTest, GuessesAtNothingElse) {
  for (const char* bad : {"", " 1", "1 ", "1  kb", "1.5gib", "-1", "0x10", "1gx", "1gibb", "gib",
                          "18446744073709551616", "16777216tib"}) {
    EXPECT_THAT(ParseByteSize(bad), StatusIs(absl::StatusCode::kInvalidArgument, "at position"))
        << bad;
  }
}

TEST(ByteSizeTest, QuotesTheTextAndThePosition) {
  EXPECT_THAT(ParseByteSize("1.5gib"),
              StatusIs(absl::StatusCode::kInvalidArgument, "\"1.5gib\" at position 1"));
}

TEST(ByteSizeTest, APartQuotesTheWholeTextAndThePositionInIt) {
  const absl::string_view text = "a=1kib;b=1.5gib";
  EXPECT_EQ(*ParseByteSizeIn(text, text.substr(2, 4)), KiB(1));
  EXPECT_THAT(ParseByteSizeIn(text, text.substr(9)),
              StatusIs(absl::StatusCode::kInvalidArgument, "\"a=1kib;b=1.5gib\" at position 10"));
}

}  // namespace
}  // namespace heapbroker
