// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/examples/digits/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/examples/digits/safetensors_header.h"
#include "tests/integration/digits/sample_files.h"
#include "tests/support/temp_dir.h"

namespace digits {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SafetensorsTest : public testing::Test {
 protected:
  absl::Status OpenStatus(absl::string_view contents) {
    WriteFile(path_, contents);
    return SafetensorsFile::Open(path_).status();
  }

  // Of a file with this header and 8 bytes of data; every error names the file.
  std::string ErrorOf(absl::string_view header) {
    const absl::Status status = OpenStatus(Safetensors(header, 8));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
    return std::string(status.message());
  }

  // Of the one tensor "a" with these three values.
  std::string ErrorOfTensor(absl::string_view dtype, absl::string_view shape,
                            absl::string_view offsets) {
    return ErrorOf(absl::StrCat(R"({"a":{"dtype":)", dtype, R"(,"shape":)", shape,
                                R"(,"data_offsets":)", offsets, "}}"));
  }

  heapbroker::TempDir dir_;
  const std::string path_ = dir_.File("model.safetensors");
};

TEST_F(SafetensorsTest, ReadsWhatTheExampleModelHolds) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(ModelPath());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tensors().size(), 6u);
  const Tensor* weight = file->Find("fc2.weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->dtype, "F32");
  EXPECT_THAT(weight->shape, testing::ElementsAre(128u, 256u));
  EXPECT_EQ(weight->size, 128u * 256 * 4);
  EXPECT_EQ(file->Find("fc4.weight"), nullptr);
}

TEST_F(SafetensorsTest, ReadsRangesOfATensorAndNothingBeyondIt) {
  ASSERT_TRUE(OpenStatus(SmallModel()).ok());
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  const Tensor& tensor = *file->Find("fc1.weight");
  std::vector<uint8_t> bytes(3);
  ASSERT_TRUE(file->Read(tensor, 45, absl::MakeSpan(bytes)).ok());
  EXPECT_THAT(bytes, testing::ElementsAre(57, 58, 59));
  EXPECT_EQ(file->Read(tensor, 46, absl::MakeSpan(bytes)).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(file->Read(tensor, ~uint64_t{0}, absl::MakeSpan(bytes)).code(),
            absl::StatusCode::kOutOfRange);
}

TEST_F(SafetensorsTest, TakesEmptyTensorsScalarsAndPadding) {
  const absl::Status status = OpenStatus(Safetensors(
      R"({"none":{"dtype":"I64","shape":[0,18446744073709551615],"data_offsets":[4,4]},)"
      R"("one":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("two":{"dtype":"U16","shape":[2,1],"data_offsets":[4,8]}}     )",
      8));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(OpenStatus(Safetensors("{}", 0)).ok());
}

TEST_F(SafetensorsTest, RefusesAFileCutAtAnyByte) {
  const std::string whole = SmallModel();
  ASSERT_TRUE(OpenStatus(whole).ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    const absl::Status status = OpenStatus(absl::string_view(whole).substr(0, size));
    EXPECT_FALSE(status.ok()) << "cut at " << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr(path_)) << "cut at " << size;
  }
  EXPECT_FALSE(OpenStatus(whole + "x").ok());
}

TEST_F(SafetensorsTest, RefusesTheExampleModelCutInItsHeaderOrItsData) {
  const std::string whole = ReadFile(ModelPath());
  std::vector<size_t> cuts{whole.size() / 2, whole.size() - 4, whole.size() - 1};
  for (size_t size = 0; size < 600; ++size) cuts.push_back(size);
  for (const size_t size : cuts) {
    EXPECT_FALSE(OpenStatus(absl::string_view(whole).substr(0, size)).ok()) << "cut at " << size;
  }
}

TEST_F(SafetensorsTest, SaysHowLongALyingHeaderWouldBe) {
  std::string file = Safetensors("{}", 0);
  file[0] = 3;
  EXPECT_THAT(std::string(OpenStatus(file).message()),
              AllOf(HasSubstr("header has 3 bytes"), HasSubstr("only 2 follow")));
  file.replace(0, 8, 8, '\xff');
  EXPECT_THAT(std::string(OpenStatus(file).message()),
              AllOf(HasSubstr("18446744073709551615"), HasSubstr("at most 100000000")));
}

TEST_F(SafetensorsTest, HoldsTheSameForEveryFlippedBitOfTheHeader) {
  const std::string whole = SmallModel();
  const uint64_t data_size = 116;
  const std::string header = whole.substr(8, whole.size() - 8 - data_size);
  for (size_t bit = 0; bit < header.size() * 8; ++bit) {
    std::string flipped = header;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto tensors = ParseSafetensorsHeader(flipped, whole.size() - data_size, data_size);
    if (!tensors.ok()) continue;  // Others still hold, as in a changed name.
    uint64_t covered = whole.size() - data_size;
    for (const Tensor& tensor : *tensors) {
      EXPECT_EQ(tensor.offset, covered);
      covered += tensor.size;
    }
    EXPECT_EQ(covered, whole.size());
  }
}

TEST_F(SafetensorsTest, NamesTheByteWhereTheHeaderIsNoJson) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("does not begin with { at byte 8"));
  EXPECT_THAT(ErrorOf(" {}"), HasSubstr("does not begin with {"));
  EXPECT_THAT(ErrorOf("{\"a\":}"), HasSubstr("not valid JSON at byte 13"));
  EXPECT_THAT(ErrorOf("{\"a\""), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf("{} {}"), HasSubstr("not valid JSON at byte 11"));
  EXPECT_THAT(ErrorOf("{\"\xff\":1}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf(absl::string_view("{}\0\0", 4)), HasSubstr("zero byte at byte 10"));
}

TEST_F(SafetensorsTest, RefusesNamesThatComeTwice) {
  const std::string tensor = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(ErrorOf(absl::StrCat("{\"a\":", tensor, ",\"a\":", tensor, "}")),
              HasSubstr("names \"a\" twice"));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})"),
              HasSubstr("tensor \"a\": gives \"dtype\" twice"));
}

TEST_F(SafetensorsTest, RefusesDeepNestingAtOnce) {
  EXPECT_THAT(ErrorOf("{\"a\":" + std::string(1'000'000, '[')), HasSubstr("deeper"));
}

TEST_F(SafetensorsTest, RefusesTensorsThatAreNotDescribedFully) {
  const std::string rule = "exactly dtype, shape and data_offsets";
  EXPECT_THAT(ErrorOf(R"({"a":1})"), HasSubstr(rule));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"F32","shape":[2]}})"), HasSubstr(rule));
  EXPECT_THAT(ErrorOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})"),
              HasSubstr(rule));
  EXPECT_THAT(ErrorOf(R"({"__metadata__":{"a":1}})"), HasSubstr("not an object of strings"));
  EXPECT_THAT(ErrorOf(R"({"__metadata__":"a"})"), HasSubstr("not an object of strings"));
}

TEST_F(SafetensorsTest, RefusesTypesAndShapesThatAreNone) {
  EXPECT_THAT(ErrorOfTensor("1", "[2]", "[0,8]"), HasSubstr("dtype is not a string"));
  EXPECT_THAT(ErrorOfTensor("\"F31\"", "[2]", "[0,8]"), HasSubstr("dtype \"F31\""));
  EXPECT_THAT(ErrorOfTensor("\"F32\"", "2", "[0,8]"), HasSubstr("shape is not an array"));
  for (const char* item : {"-1", "2.0", "\"2\"", "null", "18446744073709551616"}) {
    EXPECT_THAT(ErrorOfTensor("\"F32\"", absl::StrCat("[", item, "]"), "[0,8]"),
                HasSubstr("whole numbers"))
        << item;
  }
}

TEST_F(SafetensorsTest, RefusesSizesThatDoNotFollowFromTheShape) {
  EXPECT_THAT(ErrorOfTensor("\"F32\"", "[3]", "[0,8]"),
              AllOf(HasSubstr("takes 12 bytes"), HasSubstr("[0, 8] hold 8")));
  // 2^62 times 4 is 0 when it wraps.
  EXPECT_THAT(ErrorOfTensor("\"F32\"", "[4611686018427387904]", "[0,0]"),
              HasSubstr("more than 2^64-1"));
  EXPECT_THAT(ErrorOfTensor("\"U8\"", "[4294967296,4294967296,8]", "[0,0]"),
              HasSubstr("more than 2^64-1"));
}

TEST_F(SafetensorsTest, RefusesRangesOutsideTheFile) {
  EXPECT_THAT(ErrorOfTensor("\"F32\"", "[3]", "[0,12]"), HasSubstr("pass the end of the file"));
  EXPECT_THAT(ErrorOfTensor("\"F32\"", "[1]", "[18446744073709551612,18446744073709551615]"),
              HasSubstr("pass the end"));
  for (const char* offsets : {"[8,0]", "[0]", "[0,4,8]", "[]"}) {
    EXPECT_THAT(ErrorOfTensor("\"F32\"", "[2]", offsets), HasSubstr("begin <= end")) << offsets;
  }
}

TEST_F(SafetensorsTest, RefusesHolesOverlapsAndBytesThatNobodyOwns) {
  const auto two = [](absl::string_view a, absl::string_view b) {
    return absl::StrCat(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)", a,
                        R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)", b, "}}");
  };
  EXPECT_TRUE(OpenStatus(Safetensors(two("[4,8]", "[0,4]"), 8)).ok());
  EXPECT_THAT(ErrorOf(two("[0,4]", "[3,7]")), HasSubstr("\"b\": begins at byte"));
  EXPECT_THAT(ErrorOf(two("[0,4]", "[0,4]")), HasSubstr("inside the tensor before it"));
  EXPECT_THAT(ErrorOfTensor("\"U8\"", "[4]", "[4,8]"), HasSubstr("hole"));
  EXPECT_THAT(ErrorOfTensor("\"U8\"", "[4]", "[0,4]"), HasSubstr("the last tensor ends at byte"));
}

TEST_F(SafetensorsTest, ShowsHostileNamesShortAndEscaped) {
  const std::string error =
      ErrorOf(absl::StrCat("{\"\\u001b[31m", std::string(5000, 'x'), "\":1}"));
  EXPECT_LT(error.size(), 400u);
  EXPECT_THAT(error, HasSubstr("\\x1b[31mxxx"));
}

TEST_F(SafetensorsTest, RefusesWhatIsNoFile) {
  EXPECT_EQ(SafetensorsFile::Open(dir_.File("absent")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(SafetensorsFile::Open(dir_.path()).status().message()),
              HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace digits
