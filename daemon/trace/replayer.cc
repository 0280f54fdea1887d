// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/replayer.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "daemon/trace/header_message.h"
#include "daemon/trace/trace_reader.h"
#include "google/protobuf/util/message_differencer.h"

namespace heapbroker {
namespace {

// What one pass over the recording leaves.
struct Pass {
  std::vector<std::unique_ptr<DeviceReplay>> devices;
  TraceEnd end;
  uint64_t turns = 0;
};

// One of each device of the recording.
struct Models {
  std::vector<SizeModel> sizes;
  std::vector<TimeModel> times;
};

absl::StatusOr<Pass> RunThrough(const std::string& path,
                                const std::vector<LedgerOptions>* configuration, Models& models) {
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(path));
  const std::vector<TracedDevice>& devices = reader->start().devices;
  models.sizes.resize(devices.size());
  models.times.resize(devices.size());
  Pass pass;
  for (size_t i = 0; i < devices.size(); ++i) {
    pass.devices.push_back(std::make_unique<DeviceReplay>(
        devices[i].info, configuration != nullptr ? (*configuration)[i] : devices[i].options,
        configuration != nullptr ? Fidelity::kEstimate : Fidelity::kExact, models.sizes[i],
        models.times[i]));
  }
  while (true) {
    HB_ASSIGN_OR_RETURN(const std::optional<TracedTurn> turn, reader->Next());
    if (!turn) break;
    pass.devices[turn->device]->Apply(turn->turn);
    ++pass.turns;
  }
  pass.end = reader->end();
  return pass;
}

ConfigurationResult ResultOf(std::string name, const Pass& pass, const Models& models) {
  ConfigurationResult result;
  result.name = std::move(name);
  for (size_t i = 0; i < pass.devices.size(); ++i) {
    DeviceResult& device = result.devices.emplace_back();
    pass.devices[i]->Finish();
    device.figures = pass.devices[i]->Figures();
    const TimeModel& times = models.times[i];
    if (!times.known()) continue;
    device.saved = times.For(device.figures.granted_blocks, device.figures.granted_bytes) -
                   times.For(device.figures.allocations, device.figures.allocated_bytes);
  }
  return result;
}

// What of the recording is not there.
std::vector<std::string> Gaps(const TraceEnd& end) {
  std::vector<std::string> gaps;
  if (!end.footer) {
    gaps.emplace_back(
        "The recording just stops: the daemon was killed, or still runs. What was written until "
        "then is replayed.");
  } else if (end.footer->truncated()) {
    gaps.emplace_back(
        "The recording ended at its limit; what happened later is not in it. --record-limit sets "
        "a higher one.");
  }
  const uint64_t lost = end.footer ? end.footer->lost_turns() : 0;
  if (end.missing > 0 || lost > 0) {
    gaps.push_back(absl::StrCat(
        "The recording is incomplete: ", std::max(end.missing, lost),
        " turns were lost because they came faster than they could be written. The figures are "
        "approximate."));
  }
  return gaps;
}

// How the replay differs from what was recorded; empty where it does not.
std::string Difference(const Pass& pass) {
  for (size_t i = 0; i < pass.devices.size(); ++i) {
    if (pass.devices[i]->difference()) {
      return absl::StrCat("device ", i, ", ", *pass.devices[i]->difference());
    }
  }
  for (int i = 0; i < pass.end.footer->stats_size(); ++i) {
    std::string report;
    google::protobuf::util::MessageDifferencer differencer;
    differencer.ReportDifferencesToString(&report);
    const v1::TraceStats replayed = StatsMessage(pass.devices[static_cast<size_t>(i)]->Stats());
    if (differencer.Compare(pass.end.footer->stats(i), replayed)) continue;
    return absl::StrCat("device ", i, ", ", report.substr(0, report.find('\n')));
  }
  return "";
}

void Judge(const Pass& pass, ReplayResult& result) {
  result.notes = Gaps(pass.end);
  const bool whole = result.notes.empty();
  const bool has_stats =
      pass.end.footer && static_cast<size_t>(pass.end.footer->stats_size()) == pass.devices.size();
  if (!whole) return;
  if (!has_stats) {
    result.notes.emplace_back(
        "The recording has no statistics of its end, so that nothing says whether the replay "
        "gives the same.");
    return;
  }
  const std::string difference = Difference(pass);
  result.exact = difference.empty();
  result.notes.push_back(
      result.exact ? std::string("With the recorded configuration the replay gives exactly the "
                                 "recorded statistics.")
                   : absl::StrCat("With the recorded configuration the replay gives other "
                                  "statistics than were recorded: ",
                                  difference));
}

}  // namespace

absl::StatusOr<ReplayResult> Replay(const std::string& path,
                                    absl::Span<const ReplayConfiguration> configurations) {
  ReplayResult result;
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<TraceReader> reader, TraceReader::Open(path));
  result.start = reader->start();
  for (const ReplayConfiguration& configuration : configurations) {
    if (configuration.devices.size() == result.start.devices.size()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the configuration is for ", configuration.devices.size(),
                     " devices, and the recording has ", result.start.devices.size()));
  }
  const absl::Time begin = absl::Now();
  Models models;
  HB_ASSIGN_OR_RETURN(const Pass recorded, RunThrough(path, nullptr, models));
  result.turns = recorded.turns;
  Judge(recorded, result);  // Before what is left of the jobs is run.
  result.configurations.push_back(ResultOf("recorded", recorded, models));
  uint64_t turns = recorded.turns;
  for (const ReplayConfiguration& configuration : configurations) {
    HB_ASSIGN_OR_RETURN(const Pass pass, RunThrough(path, &configuration.devices, models));
    result.configurations.push_back(ResultOf(configuration.name, pass, models));
    turns += pass.turns;
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  if (seconds > 0) result.turns_per_second = static_cast<double>(turns) / seconds;
  return result;
}

}  // namespace heapbroker
