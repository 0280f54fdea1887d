// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/trace_reader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "daemon/trace/header_message.h"
#include "daemon/trace/turn_message.h"

namespace heapbroker {
namespace {

// How many turns may stand before an earlier one: a thread that made a turn and
// was then not run for a while writes it down late.
constexpr size_t kMostEarly = 65536;

}  // namespace

absl::StatusOr<std::unique_ptr<TraceReader>> TraceReader::Open(const std::string& path) {
  std::unique_ptr<TraceReader> reader(new TraceReader(path));
  if (!reader->file_) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": is it a file of yours?"));
  }
  HB_RETURN_IF_ERROR(reader->ReadHeader());
  return reader;
}

TraceReader::TraceReader(const std::string& path) : path_(path), file_(path, std::ios::binary) {}

absl::Status TraceReader::ReadHeader() {
  std::string magic(kTraceMagic.size(), '\0');
  file_.read(magic.data(), static_cast<std::streamsize>(magic.size()));
  if (magic != kTraceMagic) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, " is no recording: heapbrokerd --record makes them"));
  }
  position_ = magic.size();
  HB_ASSIGN_OR_RETURN(const std::optional<v1::TraceRecord> record, ReadRecord());
  if (!record) return absl::DataLossError(absl::StrCat(path_, " ends within its header"));
  if (!record->has_header()) return Wrong(magic.size(), "the first record is no header");
  HB_ASSIGN_OR_RETURN(start_, ParseHeader(record->header()));
  early_.resize(start_.devices.size());
  return absl::OkStatus();
}

bool TraceReader::ReadByte(unsigned char& byte) {
  const int next = file_.get();
  if (next == std::ifstream::traits_type::eof()) return false;
  byte = static_cast<unsigned char>(next);
  ++position_;
  return true;
}

absl::StatusOr<std::optional<v1::TraceRecord>> TraceReader::ReadRecord() {
  const uint64_t at = position_;
  uint64_t size = 0;
  unsigned char byte = 0x80;
  for (int shift = 0; (byte & 0x80) != 0; shift += 7) {
    if (!ReadByte(byte)) return std::optional<v1::TraceRecord>();
    // Four bytes hold more than the longest record's length.
    if (shift > 21) return Wrong(at, "the length of a record is out of range");
    size |= uint64_t{byte & 0x7fU} << shift;
  }
  if (size > kMaxTraceRecord) {
    return Wrong(at, absl::StrCat("a record of ", size, " bytes; at most ", kMaxTraceRecord));
  }
  std::string body(size, '\0');
  file_.read(body.data(), static_cast<std::streamsize>(size));
  if (static_cast<uint64_t>(file_.gcount()) < size) return std::optional<v1::TraceRecord>();
  position_ += size;
  v1::TraceRecord record;
  if (!record.ParseFromString(body)) return Wrong(at, "a record that cannot be read");
  return std::optional<v1::TraceRecord>(std::move(record));
}

absl::StatusOr<std::optional<TracedTurn>> TraceReader::Next() {
  while (true) {
    if (std::optional<TracedTurn> ready = TakeReady()) return ready;
    if (at_end_) return std::optional<TracedTurn>();
    HB_RETURN_IF_ERROR(ReadTurn());
  }
}

absl::Status TraceReader::ReadTurn() {
  const uint64_t at = position_;
  HB_ASSIGN_OR_RETURN(const std::optional<v1::TraceRecord> record, ReadRecord());
  if (!record || record->has_footer()) {
    at_end_ = true;
    if (record) end_.footer = record->footer();
    return absl::OkStatus();
  }
  if (!record->has_turn()) return Wrong(at, "a record that is no turn");
  absl::StatusOr<TracedTurn> turn = ParseTurn(record->turn(), start_.time);
  if (!turn.ok()) return Wrong(at, turn.status().message());
  if (turn->device >= early_.size()) {
    return Wrong(
        at, absl::StrCat("a turn of device ", turn->device, ", and there are ", early_.size()));
  }
  Early& early = early_[turn->device];
  const uint64_t sequence = turn->turn.sequence;
  // One that is later than that was counted as missing.
  if (!early.last || sequence > *early.last) early.turns.emplace(sequence, *std::move(turn));
  turn_of_ = record->turn().device();
  return absl::OkStatus();
}

std::optional<TracedTurn> TraceReader::TakeReady() {
  for (size_t i = 0; i < early_.size(); ++i) {
    Early& early = early_[(turn_of_ + i) % early_.size()];
    if (early.turns.empty()) continue;
    const auto first = early.turns.begin();
    const bool follows = early.last && first->first == *early.last + 1;
    if (!follows && !at_end_ && early.turns.size() < kMostEarly) continue;
    if (!follows && early.last) end_.missing += first->first - *early.last - 1;
    early.last = first->first;
    TracedTurn turn = std::move(first->second);
    early.turns.erase(first);
    return turn;
  }
  return std::nullopt;
}

absl::Status TraceReader::Wrong(uint64_t at, absl::string_view what) const {
  return absl::DataLossError(absl::StrCat(path_, " is damaged at byte ", at, ": ", what));
}

}  // namespace heapbroker
