// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/examples/digits/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "client/examples/digits/dataset.h"
#include "tests/integration/digits/cpu_classifier.h"
#include "tests/integration/digits/sample_files.h"
#include "tests/support/temp_dir.h"

namespace digits {
namespace {

using ::testing::HasSubstr;

class ModelTest : public testing::Test {
 protected:
  absl::StatusOr<Model> Open(const std::string& contents) {
    WriteFile(path_, contents);
    return Model::Open(path_);
  }
  // Of the small model with one piece of its header replaced by another of the
  // same length.
  std::string ErrorOf(const std::string& from, const std::string& to) {
    const absl::Status status = Open(absl::StrReplaceAll(SmallModel(), {{from, to}})).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  heapbroker::TempDir dir_;
  const std::string path_ = dir_.File("model.safetensors");
};

TEST_F(ModelTest, FindsTheLayersOfTheExample) {
  const absl::StatusOr<Model> model = Model::Open(ModelPath());
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->layers().size(), 3u);
  EXPECT_EQ(model->inputs(), 784u);
  EXPECT_EQ(model->layers()[1].inputs, 256u);
  EXPECT_EQ(model->layers()[1].outputs, 128u);
  EXPECT_EQ(model->outputs(), 10u);
}

TEST_F(ModelTest, LaysTensorsOutAlignedWithZerosBetweenThem) {
  const absl::StatusOr<Model> model = Open(SmallModel());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->weights_size(), 6 * Model::kAlignment);
  std::vector<uint8_t> all(model->weights_size());
  ASSERT_TRUE(model->ReadWeights(0, absl::MakeSpan(all)).ok());
  const Layer& first = model->layers()[0];
  EXPECT_EQ(first.weight.offset % Model::kAlignment, 0u);
  // The file's data counts up from 0, and fc1.weight is its bytes 12 to 59.
  EXPECT_EQ(all[first.weight.offset], 12);
  EXPECT_EQ(all[first.weight.offset + 47], 59);
  EXPECT_EQ(all[first.weight.offset + 48], 0);
  EXPECT_EQ(all[first.bias.offset + 11], 11);
}

TEST_F(ModelTest, ReadsTheSameInPiecesOfAnySize) {
  const absl::StatusOr<Model> model = Open(SmallModel());
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<uint8_t> all(model->weights_size());
  ASSERT_TRUE(model->ReadWeights(0, absl::MakeSpan(all)).ok());
  for (const size_t piece : {1u, 7u, 256u, 1000u}) {
    std::vector<uint8_t> joined(all.size(), 0xff);
    for (size_t offset = 0; offset < all.size(); offset += piece) {
      ASSERT_TRUE(model->ReadWeights(offset, absl::MakeSpan(joined).subspan(offset, piece)).ok());
    }
    EXPECT_EQ(joined, all) << "in pieces of " << piece;
  }
}

TEST_F(ModelTest, RefusesTensorsThatAreNoClassifier) {
  EXPECT_THAT(ErrorOf("fc1.bias", "fc9.bias"), HasSubstr("none that is named \"fc1.bias\""));
  EXPECT_THAT(ErrorOf("fc3.", "fc4."), HasSubstr("none that is named \"fc3.weight\""));
  EXPECT_THAT(ErrorOf(R"("F32","shape":[3,4])", R"("I32","shape":[3,4])"), HasSubstr("2 of F32"));
  EXPECT_THAT(ErrorOf("[2,3]", "[6]  "), HasSubstr("1 dimensions of F32"));
  EXPECT_THAT(ErrorOf("[2,3]", "[3,2]"), HasSubstr("\"fc2.bias\" has 2 values"));
  EXPECT_THAT(ErrorOf("[3,4]", "[4,3]"), HasSubstr("\"fc1.bias\" has 3 values"));
  EXPECT_FALSE(Open(Safetensors("{}", 0)).ok());
}

TEST_F(ModelTest, RefusesALayerOfAnotherWidthThanTheOneBeforeIt) {
  const absl::StatusOr<Model> model =
      Open(Safetensors(R"({"fc1.bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("fc1.weight":{"dtype":"F32","shape":[1,1],"data_offsets":[4,8]},)"
                       R"("fc2.bias":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},)"
                       R"("fc2.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[12,20]}})",
                       20));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("takes 2 inputs"));
}

TEST_F(ModelTest, TellsWhenTheFileWasCutAfterItWasOpened) {
  const absl::StatusOr<Model> model = Open(SmallModel());
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string whole = SmallModel();
  WriteFile(path_, whole.substr(0, whole.size() - 1));
  std::vector<uint8_t> all(model->weights_size());
  const absl::Status status = model->ReadWeights(0, absl::MakeSpan(all));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("was cut at byte"));
}

TEST_F(ModelTest, AnswersOnTheCpuAsTheDataSetSays) {
  const absl::StatusOr<Dataset> dataset = LoadDataset(ImagesPath(), LabelsPath());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  const absl::StatusOr<uint32_t> correct = CountCorrectOnCpu(ModelPath(), *dataset);
  ASSERT_TRUE(correct.ok()) << correct.status();
  EXPECT_EQ(*correct, 963u);
}

}  // namespace
}  // namespace digits
