// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/posix/posix_error.h"
#include "daemon/trace/header_message.h"
#include "daemon/trace/record_bytes.h"
#include "daemon/trace/turn_message.h"

namespace heapbroker {
namespace {

// Written at a time.
constexpr size_t kChunk = size_t{256} << 10;

// About what a turn takes while it is queued: most of it are its lists.
Bytes WeightOf(const Turn& turn) {
  size_t weight = sizeof(TracedTurn);
  if (const auto* asked = std::get_if<AllocateAsked>(&turn)) {
    weight += asked->request.blocks.size() * sizeof(BlockRequest);
  } else if (const auto* released = std::get_if<BlocksReleased>(&turn)) {
    weight += released->blocks.size() * sizeof(BlockId);
  } else if (const auto* answered = std::get_if<CallAnswered>(&turn)) {
    weight += answered->blocks.size() * sizeof(BlockId);
  } else if (const auto* filled = std::get_if<JobFilled>(&turn)) {
    weight += filled->answers.size() * sizeof(DeviceAnswer);
  } else if (const auto* reported = std::get_if<IdleReported>(&turn)) {
    weight += reported->reports.size() * sizeof(IdleReport);
  }
  return Bytes(weight);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Start(const std::string& path,
                                                          const TraceStart& start,
                                                          const RecorderOptions& options,
                                                          Warn warn) {
  v1::TraceRecord header;
  *header.mutable_header() = HeaderMessage(start);
  std::string bytes(kTraceMagic);
  AppendRecord(header, bytes);
  if (bytes.size() > kMaxTraceRecord || bytes.size() > options.limit.count()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the beginning of the recording takes ", bytes.size(),
                     " bytes, which is more than the limit: set a higher one, or fewer pools"));
  }
  UniqueFd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  if (!file) {
    return PosixError(
        errno, absl::StrCat("cannot make ", path),
        errno == EEXIST ? "a recording never writes over anything: name another file" : "");
  }
  std::unique_ptr<Recorder> recorder(
      new Recorder(std::move(file), start, options, std::move(warn)));
  HB_RETURN_IF_ERROR(recorder->WriteAll(bytes));
  Recorder* const running = recorder.get();
  recorder->thread_ = std::thread([running] { running->Run(); });
  return recorder;
}

Recorder::Recorder(UniqueFd file, const TraceStart& start, const RecorderOptions& options,
                   Warn warn)
    : start_(start.time), options_(options), warn_(std::move(warn)), file_(std::move(file)) {}

Recorder::~Recorder() { Finish({}); }

void Recorder::Record(uint32_t device, RecordedTurn turn) {
  const Bytes weight = WeightOf(turn.turn);
  MutexLock lock(mutex_);
  if (ended_ || finishing_) return;
  if (weight > options_.queue - queued_) {
    ++lost_;
    return;
  }
  queued_ += weight;
  queue_.push_back({device, std::move(turn)});
  if (queue_.size() == 1) changed_.NotifyOne();
}

void Recorder::Finish(absl::Span<const DeviceStats> stats) {
  {
    MutexLock lock(mutex_);
    finishing_ = true;
    changed_.NotifyOne();
  }
  if (!thread_.joinable()) return;
  thread_.join();
  if (!file_) return;
  WriteFooter(stats);
  file_.Reset();
}

void Recorder::Run() {
  while (true) {
    std::vector<TracedTurn> turns;
    bool last = false;
    {
      MutexLock lock(mutex_);
      while (queue_.empty() && !finishing_) changed_.Wait(mutex_);
      turns.swap(queue_);
      queued_ = Bytes();
      last = finishing_;
    }
    if (!WriteTurns(turns) || last) return;
  }
}

bool Recorder::WriteTurns(const std::vector<TracedTurn>& turns) {
  std::string bytes;
  for (const TracedTurn& turn : turns) {
    v1::TraceRecord record;
    *record.mutable_turn() = TurnMessage(turn, start_, key_);
    const size_t before = bytes.size();
    AppendRecord(record, bytes);
    const bool full = written_.count() + bytes.size() > options_.limit.count();
    if (full) bytes.resize(before);
    if (full || bytes.size() >= kChunk) {
      if (!WriteRecord(bytes)) return false;
      bytes.clear();
    }
    if (full) {
      truncated_ = true;
      WriteFooter({});
      End(absl::StrCat("the recording has reached its limit of ", FormatBytes(options_.limit),
                       " and ends here"));
      return false;
    }
  }
  return WriteRecord(bytes);
}

bool Recorder::WriteRecord(const std::string& record) {
  const absl::Status status = WriteAll(record);
  if (status.ok()) return true;
  End(absl::StrCat("the recording ends here: ", status.message()));
  return false;
}

void Recorder::End(const std::string& why) {
  {
    MutexLock lock(mutex_);
    ended_ = true;
    queue_.clear();
    queue_.shrink_to_fit();
  }
  file_.Reset();
  warn_(why);
}

void Recorder::WriteFooter(absl::Span<const DeviceStats> stats) {
  v1::TraceRecord record;
  v1::TraceFooter* const footer = record.mutable_footer();
  for (const DeviceStats& one : stats) *footer->add_stats() = StatsMessage(one);
  footer->set_truncated(truncated_);
  {
    MutexLock lock(mutex_);
    footer->set_lost_turns(lost_);
  }
  if (footer->lost_turns() > 0) {
    warn_(absl::StrCat("the recording is incomplete: ", footer->lost_turns(),
                       " turns came faster than they could be written"));
  }
  std::string bytes;
  AppendRecord(record, bytes);
  // A reader takes a recording without a footer for one that was cut off.
  if (const absl::Status status = WriteAll(bytes); !status.ok()) {
    warn_(absl::StrCat("the recording has no end: ", status.message()));
  }
}

absl::Status Recorder::WriteAll(const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(file_.get(), bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return PosixError(errno, "cannot write to the file");
    done += static_cast<size_t>(n);
  }
  written_ += Bytes(bytes.size());
  return absl::OkStatus();
}

}  // namespace heapbroker
