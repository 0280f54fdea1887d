// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/trace/replayer.h"

namespace heapbroker {
namespace {

constexpr size_t kColumns = 10;
using Row = std::array<std::string, kColumns>;

Row HeadRow() {
  return {"configuration",    "blocks",   "hits",        "hit rate", "peak",
          "lost to rounding", "refusals", "allocations", "frees",    "time saved"};
}

Row RowOf(const std::string& name, const DeviceResult& result) {
  const ReplayFigures& figures = result.figures;
  const double rate = figures.granted_blocks == 0 ? 0
                                                  : 100.0 * static_cast<double>(figures.hits) /
                                                        static_cast<double>(figures.granted_blocks);
  return {name,
          absl::StrCat(figures.granted_blocks),
          absl::StrCat(figures.hits),
          absl::StrFormat("%.1f %%", rate),
          FormatBytes(figures.peak),
          FormatBytes(figures.peak_rounding),
          absl::StrCat(figures.refusals),
          absl::StrCat(figures.allocations),
          absl::StrCat(figures.frees),
          result.saved ? absl::StrFormat("%.3f ms", absl::ToDoubleMilliseconds(*result.saved))
                       : "unknown"};
}

// Names to the left, figures to the right.
std::string Table(const std::vector<Row>& rows) {
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    absl::StrAppend(&text, row[0], std::string(widths[0] - row[0].size(), ' '));
    for (size_t i = 1; i < kColumns; ++i) {
      absl::StrAppend(&text, std::string(widths[i] - row[i].size() + 2, ' '), row[i]);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace

std::string RenderReplay(const ReplayResult& result) {
  std::string text = absl::StrCat(
      result.turns, " turns, recorded by heapbrokerd ", result.start.daemon_version, " from ",
      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", result.start.time, absl::UTCTimeZone()), "\n");
  if (!result.start.comment.empty()) absl::StrAppend(&text, result.start.comment, "\n");
  for (const std::string& note : result.notes) absl::StrAppend(&text, note, "\n");
  for (size_t i = 0; i < result.start.devices.size(); ++i) {
    absl::StrAppend(&text, "\ndevice ", i, ": ", result.start.devices[i].info.name, "\n");
    std::vector<Row> rows = {HeadRow()};
    for (const ConfigurationResult& configuration : result.configurations) {
      rows.push_back(RowOf(configuration.name, configuration.devices[i]));
    }
    absl::StrAppend(&text, Table(rows));
  }
  absl::StrAppend(&text, absl::StrFormat("\nreplayed at %.0f turns/s\n", result.turns_per_second));
  return text;
}

}  // namespace heapbroker
