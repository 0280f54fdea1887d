// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/examples/digits/idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "client/examples/digits/dataset.h"
#include "tests/integration/digits/sample_files.h"
#include "tests/support/temp_dir.h"

namespace digits {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class IdxTest : public testing::Test {
 protected:
  absl::StatusOr<IdxArray> Read(const std::string& contents, int rank) {
    WriteFile(path_, contents);
    return ReadIdx(path_, rank);
  }
  std::string ErrorOf(const std::string& contents, int rank) {
    const absl::Status status = Read(contents, rank).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
    return std::string(status.message());
  }

  heapbroker::TempDir dir_;
  const std::string path_ = dir_.File("array.idx");
  const std::string two_by_three_ = std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x03", 12) + "abcdef";
};

TEST_F(IdxTest, ReadsDimensionsAndElements) {
  const absl::StatusOr<IdxArray> array = Read(two_by_three_, 2);
  ASSERT_TRUE(array.ok()) << array.status();
  EXPECT_THAT(array->dimensions, ElementsAre(2u, 3u));
  EXPECT_THAT(array->elements, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
}

TEST_F(IdxTest, RefusesAFileCutAtAnyByteOrTooLong) {
  for (size_t size = 0; size < two_by_three_.size(); ++size) {
    EXPECT_FALSE(Read(two_by_three_.substr(0, size), 2).ok()) << "cut at " << size;
  }
  EXPECT_THAT(ErrorOf(two_by_three_ + "g", 2),
              AllOf(HasSubstr("2 x 3"), HasSubstr("but 7 follow")));
}

TEST_F(IdxTest, RefusesAnotherRankOrElementType) {
  EXPECT_THAT(ErrorOf(two_by_three_, 1), HasSubstr("begins with bytes 0 0 8 2"));
  EXPECT_FALSE(Read(two_by_three_, 3).ok());
  std::string floats = two_by_three_;
  floats[2] = 0x0d;
  EXPECT_THAT(ErrorOf(floats, 2), HasSubstr("unsigned bytes"));
}

TEST_F(IdxTest, RefusesDimensionsThatTheFileCannotHold) {
  // 2^32-1 cubed passes 2^64; 65536 * 65536 * 65536 wraps to 2^48.
  EXPECT_FALSE(Read(std::string("\0\0\x08\x03", 4) + std::string(12, '\xff') + "a", 3).ok());
  std::string wrapping("\0\0\x08\x03\0\1\0\0\0\1\0\0\0\1\0\0", 16);
  EXPECT_THAT(ErrorOf(wrapping, 3), HasSubstr("65536 x 65536 x 65536"));
  std::string empty("\0\0\x08\x01\0\0\0\0", 8);
  EXPECT_THAT(ErrorOf(empty, 1), HasSubstr("dimension 0 is 0"));
}

TEST_F(IdxTest, PairsImagesWithLabelsAndRefusesAnotherNumberOfThem) {
  const absl::StatusOr<Dataset> dataset = LoadDataset(ImagesPath(), LabelsPath());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->image_count, 1000u);
  EXPECT_EQ(dataset->pixels_per_image, 28u * 28);

  WriteFile(path_, std::string("\0\0\x08\x01\0\0\0\x02\x05\x06", 10));
  EXPECT_THAT(std::string(LoadDataset(ImagesPath(), path_).status().message()),
              AllOf(HasSubstr("1000 images"), HasSubstr("2 labels")));
}

}  // namespace
}  // namespace digits
