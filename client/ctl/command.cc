// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/command.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/ctl/output.h"
#include "client/ctl/queries.h"
#include "client/ctl/render.h"
#include "client/ctl/screen.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

// `render` is for people.
template <typename Reply, typename Render>
absl::Status Show(Command::Format format, const absl::StatusOr<Reply>& reply, Render render) {
  HB_RETURN_IF_ERROR(reply.status());
  if (format == Command::Format::kText) return WriteOutput(render(*reply));
  HB_ASSIGN_OR_RETURN(const std::string json, RenderJson(*reply));
  return WriteOutput(json);
}

absl::StatusOr<ExitCode> ShowHealth(Command::Format format, Queries& queries) {
  const auto health = queries.Health();
  HB_RETURN_IF_ERROR(Show(format, health, RenderHealth));
  const bool serving = health->status() == grpc::health::v1::HealthCheckResponse::SERVING;
  return serving ? ExitCode::kFine : ExitCode::kRefused;
}

// On a terminal each text takes the place of the one before it; elsewhere they
// follow each other, with a blank line between them.
absl::Status WatchStats(const Command& command, Queries& queries) {
  bool first = true;
  return queries.WatchStats(
      *command.watch_interval, [&](const v1::GetStatsResponse& reply) -> absl::Status {
        if (command.format == Command::Format::kJson) {
          HB_ASSIGN_OR_RETURN(const std::string line, RenderJson(reply, JsonStyle::kLine));
          return WriteOutput(line);
        }
        const std::string text = RenderStats(reply, absl::Now());
        if (const std::optional<size_t> rows = OutputRows()) {
          return WriteOutput(Repaint(text, *rows));
        }
        return WriteOutput(absl::StrCat(std::exchange(first, false) ? "" : "\n", text));
      });
}

absl::Status ShowReply(const Command& command, Queries& queries) {
  const absl::Time now = absl::Now();
  switch (command.verb) {
    case Command::Verb::kStats:
      if (command.watch_interval) return WatchStats(command, queries);
      return Show(command.format, queries.Stats(),
                  [now](const auto& reply) { return RenderStats(reply, now); });
    case Command::Verb::kPools:
      return Show(command.format, queries.Stats(), RenderPools);
    case Command::Verb::kHeaps:
      return Show(command.format, queries.Stats(), RenderHeaps);
    case Command::Verb::kSessions:
      return Show(command.format,
                  queries.Sessions(command.with_observers ? Queries::Observers::kShown
                                                          : Queries::Observers::kHidden),
                  [now](const auto& reply) { return RenderSessions(reply, now); });
    case Command::Verb::kLeases:
      return Show(command.format, queries.Leases(command.session_id),
                  [now](const auto& reply) { return RenderLeases(reply, now); });
    case Command::Verb::kSegments:
      return Show(command.format, queries.Segments(), RenderSegments);
    case Command::Verb::kTrim:
      return Show(command.format, queries.Trim(command.trim), RenderTrim);
    case Command::Verb::kHealth:
      return Show(command.format, queries.Health(), RenderHealth);
  }
  return absl::InternalError("no such command");
}

}  // namespace

absl::StatusOr<ExitCode> Run(const Command& command) {
  HB_ASSIGN_OR_RETURN(Queries queries, Queries::Connect(command.runtime_dir));
  if (command.verb == Command::Verb::kHealth) return ShowHealth(command.format, queries);
  HB_RETURN_IF_ERROR(ShowReply(command, queries));
  return ExitCode::kFine;
}

}  // namespace heapbroker
