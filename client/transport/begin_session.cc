// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/begin_session.h"

#include <errno.h>

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/transport/runtime_dirs.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"
#include "common/grpc/session_metadata.h"

namespace heapbroker {
namespace {

static_assert(kMaxClientNameBytes == kMaxNameBytes);

absl::StatusOr<std::string> NameFor(const std::string& wanted) {
  if (!wanted.empty()) {
    HB_RETURN_IF_ERROR(CheckName("ClientOptions.name", wanted));
    return wanted;
  }
  // A program cannot help how its file is called.
  const std::string program = program_invocation_short_name;
  return CheckName("name", program).ok() ? program : "unnamed";
}

// By the time that somebody connects again, or gRPC connects first, the working
// directory may be another one.
std::string AbsolutePath(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::absolute(path, ignored).string();
}

// The socket in the first directory that has one.
absl::StatusOr<BegunSession> OpenFirst(const std::vector<std::string>& candidates,
                                       const CallLimits& limits) {
  for (const std::string& dir : candidates) {
    absl::StatusOr<std::unique_ptr<SessionChannel>> channel =
        SessionChannel::Open(absl::StrCat(dir, "/", kSessionSocketName), limits);
    if (channel.ok()) {
      return BegunSession{.runtime_dir = AbsolutePath(dir), .channel = *std::move(channel)};
    }
    if (!absl::IsNotFound(channel.status())) return std::move(channel).status();
  }
  return absl::NotFoundError(
      absl::StrCat("no heapbrokerd found: there is no ", kSessionSocketName, " in ",
                   absl::StrJoin(candidates, " or "),
                   "; start the daemon, or set HEAPBROKER_RUNTIME_DIR to its --runtime-dir"));
}

absl::Status CheckWelcome(const v1::Welcome& welcome) {
  if (welcome.protocol_major() != kProtocolMajor) {
    return absl::FailedPreconditionError(
        absl::StrCat("the daemon speaks protocol version ", welcome.protocol_major(), ".",
                     welcome.protocol_minor(), " and this library ", kProtocolMajor, ".",
                     kProtocolMinor, "; install a library of the daemon's version"));
  }
  if (welcome.token().size() != kSessionTokenBytes) {
    return absl::InternalError(absl::StrCat("the daemon sent a token of ", welcome.token().size(),
                                            " bytes instead of ", kSessionTokenBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BegunSession> BeginSession(const ClientOptions& options, const CallLimits& limits) {
  v1::Hello hello;
  HB_ASSIGN_OR_RETURN(const std::string name, NameFor(options.name));
  hello.set_name(name);
  hello.set_protocol_major(kProtocolMajor);
  hello.set_protocol_minor(kProtocolMinor);
  hello.set_observer(options.observer);
  const std::vector<std::string> candidates =
      RuntimeDirCandidates(ReadRuntimeDirSources(options.runtime_dir));
  HB_ASSIGN_OR_RETURN(BegunSession opened, OpenFirst(candidates, limits));
  HB_ASSIGN_OR_RETURN(opened.welcome, opened.channel->SayHello(hello, limits));
  HB_RETURN_IF_ERROR(CheckWelcome(opened.welcome));
  return opened;
}

}  // namespace heapbroker
