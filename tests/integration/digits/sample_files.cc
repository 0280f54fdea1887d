// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/digits/sample_files.h"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/status/statusor.h"
#include "client/examples/digits/safetensors.h"

namespace digits {
namespace {

[[noreturn]] void Die(absl::string_view what, const std::string& path) {
  std::cerr << what << " " << path << "\n";
  std::abort();
}

}  // namespace

std::string ModelPath() { return DIGITS_DATA_DIR "/mlp.safetensors"; }
std::string ImagesPath() { return DIGITS_DATA_DIR "/test-images.idx3-ubyte"; }
std::string LabelsPath() { return DIGITS_DATA_DIR "/test-labels.idx1-ubyte"; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string contents((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) Die("cannot read", path);
  return contents;
}

void WriteFile(const std::string& path, absl::string_view contents) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  file.close();
  if (!file) Die("cannot write", path);
}

std::string Safetensors(absl::string_view header, uint64_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  file.append(header.data(), header.size());
  for (uint64_t i = 0; i < data_bytes; ++i) file.push_back(static_cast<char>(i));
  return file;
}

std::string SmallModel() {
  return Safetensors(R"({"__metadata__":{"format":"pt"},)"
                     R"("fc1.bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
                     R"("fc1.weight":{"dtype":"F32","shape":[3,4],"data_offsets":[12,60]},)"
                     R"("fc2.bias":{"dtype":"F32","shape":[2],"data_offsets":[60,68]},)"
                     R"("fc2.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[68,92]},)"
                     R"("fc3.bias":{"dtype":"F32","shape":[2],"data_offsets":[92,100]},)"
                     R"("fc3.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[100,116]}})",
                     116);
}

std::string ModelWithZeroedRow(uint32_t row) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(ModelPath());
  const Tensor* weight = file.ok() ? file->Find("fc3.weight") : nullptr;
  if (weight == nullptr) Die("no fc3.weight in", ModelPath());
  const uint64_t row_bytes = weight->shape[1] * sizeof(float);
  std::string contents = ReadFile(ModelPath());
  contents.replace(weight->offset + row * row_bytes, row_bytes, row_bytes, '\0');
  return contents;
}

}  // namespace digits
