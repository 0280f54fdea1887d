// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "client/ctl/command.h"

#include "absl/time/clock.h"
#include "client/ctl/queries.h"
#include "client/ctl/render.h"
#include "common/base/status_macros.h"

namespace heapbroker {
namespace {

// `render` is for people.
template <typename Reply, typename Render>
absl::StatusOr<std::string> Show(Command::Format format, const absl::StatusOr<Reply>& reply,
                                 Render render) {
  HB_RETURN_IF_ERROR(reply.status());
  return format == Command::Format::kJson ? RenderJson(*reply) : render(*reply);
}

absl::StatusOr<Answer> ShowHealth(Command::Format format, Queries& queries) {
  const auto health = queries.Health();
  HB_ASSIGN_OR_RETURN(const std::string text, Show(format, health, RenderHealth));
  const bool serving = health->status() == grpc::health::v1::HealthCheckResponse::SERVING;
  return Answer{.text = text, .exit_code = serving ? ExitCode::kFine : ExitCode::kRefused};
}

}  // namespace

absl::StatusOr<Answer> Run(const Command& command) {
  HB_ASSIGN_OR_RETURN(Queries queries, Queries::Connect(command.runtime_dir));
  const absl::Time now = absl::Now();
  absl::StatusOr<std::string> text;
  switch (command.verb) {
    case Command::Verb::kHealth:
      return ShowHealth(command.format, queries);
    case Command::Verb::kStats:
      text = Show(command.format, queries.Stats(),
                  [now](const auto& reply) { return RenderStats(reply, now); });
      break;
    case Command::Verb::kSessions:
      text = Show(command.format,
                  queries.Sessions(command.with_observers ? Queries::Observers::kShown
                                                          : Queries::Observers::kHidden),
                  [now](const auto& reply) { return RenderSessions(reply, now); });
      break;
    case Command::Verb::kSegments:
      text = Show(command.format, queries.Segments(), RenderSegments);
      break;
  }
  HB_RETURN_IF_ERROR(text.status());
  return Answer{.text = *std::move(text)};
}

}  // namespace heapbroker
