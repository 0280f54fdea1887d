// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "common/base/largest_fitting.h"

#include "gtest/gtest.h"

namespace heapbroker {
namespace {

// How many questions it takes, and what comes out, where a size is padded to
// `granularity` and `extra` is added.
struct Found {
  Bytes size;
  int questions = 0;
};
Found Search(Bytes limit, Bytes granularity, Bytes extra) {
  Found found;
  const absl::StatusOr<Bytes> size =
      LargestFitting(limit, [&](Bytes asked) -> absl::StatusOr<Bytes> {
        ++found.questions;
        return AlignUp(asked, granularity).value_or(Bytes::Max()) + extra;
      });
  EXPECT_TRUE(size.ok()) << size.status();
  found.size = size.value_or(Bytes());
  return found;
}

TEST(LargestFittingTest, WithoutPaddingOneQuestionIsEnough) {
  for (uint64_t limit : {uint64_t{1}, uint64_t{65537}, GiB(4).count(), Bytes::Max().count()}) {
    const Found found = Search(Bytes(limit), Bytes(1), Bytes());
    EXPECT_EQ(found.size, Bytes(limit));
    EXPECT_EQ(found.questions, 1);
  }
}

TEST(LargestFittingTest, FindsTheLargestExactlyUnderPadding) {
  EXPECT_EQ(Search(KiB(64) + Bytes(64), KiB(64), Bytes(64)).size, KiB(64));
  EXPECT_EQ(Search(KiB(128) + Bytes(63), KiB(64), Bytes(64)).size, KiB(64));
  EXPECT_EQ(Search(MiB(1), Bytes(1), Bytes(1)).size, MiB(1) - Bytes(1));
  EXPECT_EQ(Search(Bytes(2), Bytes(1), Bytes(1)).size, Bytes(1));
}

TEST(LargestFittingTest, TheNumberOfQuestionsIsBounded) {
  EXPECT_LE(Search(Bytes(uint64_t{1} << 63), Bytes(1), Bytes(1)).questions, 65);
}

TEST(LargestFittingTest, RefusesWhereNothingFits) {
  for (uint64_t limit : {0, 1, 63}) {
    EXPECT_EQ(LargestFitting(Bytes(limit), [](Bytes) { return KiB(64); }).status().code(),
              absl::StatusCode::kResourceExhausted);
  }
}

TEST(LargestFittingTest, PassesErrorsOn) {
  const auto lost = [](Bytes) -> absl::StatusOr<Bytes> { return absl::UnavailableError("lost"); };
  EXPECT_EQ(LargestFitting(MiB(1), lost).status(), absl::UnavailableError("lost"));
  const auto lost_later = [](Bytes size) -> absl::StatusOr<Bytes> {
    if (size == MiB(1)) return MiB(2);
    return absl::UnavailableError("lost");
  };
  EXPECT_EQ(LargestFitting(MiB(1), lost_later).status(), absl::UnavailableError("lost"));
}

}  // namespace
}  // namespace heapbroker
