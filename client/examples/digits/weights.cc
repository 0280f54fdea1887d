// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "weights.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "heapbroker/checksum.h"
#include "heapbroker/units.h"

namespace digits {
namespace {

using heapbroker::Bytes;
using heapbroker::Checksum;

// So that a model needs no second copy in this process's memory.
constexpr uint64_t kPieceBytes = 1 << 20;

std::string Hex(Checksum checksum) {
  return absl::StrCat(absl::Hex(checksum.high, absl::kZeroPad16),
                      absl::Hex(checksum.low, absl::kZeroPad16));
}

// The laid-out weights piece by piece, from front to back.
absl::Status ForEachPiece(
    const Model& model,
    absl::FunctionRef<absl::Status(uint64_t offset, absl::Span<const uint8_t> piece)> use) {
  std::vector<uint8_t> buffer(std::min(kPieceBytes, model.weights_size()));
  for (uint64_t offset = 0; offset < model.weights_size();) {
    const absl::Span<uint8_t> piece = absl::MakeSpan(buffer).first(
        std::min<uint64_t>(buffer.size(), model.weights_size() - offset));
    if (absl::Status read = model.ReadWeights(offset, piece); !read.ok()) return read;
    if (absl::Status used = use(offset, piece); !used.ok()) return used;
    offset += piece.size();
  }
  return absl::OkStatus();
}

absl::StatusOr<WeightsOrigin> Load(const Model& model, Checksum expected,
                                   heapbroker::ConstantAllocator& weights) {
  heapbroker::Checksummer written;
  absl::Status status =
      ForEachPiece(model, [&](uint64_t offset, absl::Span<const uint8_t> piece) -> absl::Status {
        written.Add(piece.data(), Bytes(piece.size()));
        return weights.Write(Bytes(offset), piece.data(), Bytes(piece.size()));
      });
  if (!status.ok()) return status;
  // Before sealing: other processes must never find these under that name.
  if (written.Finish() != expected) {
    return absl::FailedPreconditionError(
        absl::StrCat(model.path(), ": changed while it was being loaded; start again"));
  }
  if (status = weights.Seal(); !status.ok()) return status;
  return WeightsOrigin::kLoaded;
}

}  // namespace

absl::StatusOr<Checksum> WeightsChecksum(const Model& model) {
  heapbroker::Checksummer checksummer;
  absl::Status status = ForEachPiece(model, [&](uint64_t, absl::Span<const uint8_t> piece) {
    checksummer.Add(piece.data(), Bytes(piece.size()));
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return checksummer.Finish();
}

std::string SegmentName(Checksum checksum) { return absl::StrCat("digits-", Hex(checksum)); }

absl::StatusOr<WeightsOrigin> ProvideWeights(const Model& model, Checksum expected,
                                             heapbroker::ConstantAllocator& weights) {
  if (weights.must_fill()) return Load(model, expected, weights);
  if (weights.checksum() != expected) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the segment holds other weights, with checksum ", Hex(weights.checksum()), ", than ",
        model.path(), ", with checksum ", Hex(expected), "; name another with --segment"));
  }
  return WeightsOrigin::kAttached;
}

}  // namespace digits
