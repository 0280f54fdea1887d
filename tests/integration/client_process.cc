// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/client_process.h"

#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/posix/packet.h"
#include "common/posix/unix_socket.h"
#include "tests/support/daemon_process.h"

namespace heapbroker {
namespace {

constexpr absl::Duration kStartLimit = absl::Seconds(30);

// The path of the program for this user: a copy where the user may not reach the
// build directory.
absl::StatusOr<std::string> ProgramFor(const ClientProcessOptions& options, const TempDir& dir) {
  const std::string built = BuiltProgramPath("client_program");
  if (!options.uid) return built;
  const std::string copy = dir.File("client_program");
  std::error_code error;
  std::filesystem::copy_file(built, copy, error);
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat("copying to ", copy));
  if (chmod(dir.path().c_str(), 0755) != 0) return absl::ErrnoToStatus(errno, "chmod");
  return copy;
}

// "ok TEXT" or "error CODE TEXT".
absl::StatusOr<std::string> ParseAnswer(absl::string_view packet) {
  if (absl::ConsumePrefix(&packet, "ok ")) return std::string(packet);
  const std::vector<std::string> parts = absl::StrSplit(packet, absl::MaxSplits(' ', 2));
  int code = 0;
  if (parts.size() != 3 || parts[0] != "error" || !absl::SimpleAtoi(parts[1], &code)) {
    return absl::InternalError(absl::StrCat("client_program answered: ", packet));
  }
  return absl::Status(static_cast<absl::StatusCode>(code), parts[2]);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ClientProcess>> ClientProcess::Start(
    const ClientProcessOptions& options) {
  auto dir = std::make_unique<TempDir>();
  const std::string control_path = dir->File("control");
  HB_ASSIGN_OR_RETURN(const UniqueFd listener,
                      ListenUnix(control_path, SocketKind::kSeqPacket, 0666));
  HB_ASSIGN_OR_RETURN(const std::string program, ProgramFor(options, *dir));
  HB_ASSIGN_OR_RETURN(Process process,
                      Process::Start({.command = {program, options.runtime_dir, control_path},
                                      .environment = {},
                                      .uid = options.uid}));
  HB_RETURN_IF_ERROR(WaitReadable(listener, kStartLimit));
  HB_ASSIGN_OR_RETURN(UniqueFd control, AcceptUnix(listener));
  return std::unique_ptr<ClientProcess>(
      new ClientProcess(std::move(dir), std::move(process), std::move(control)));
}

absl::StatusOr<std::string> ClientProcess::Ask(absl::string_view command, absl::Duration limit) {
  HB_RETURN_IF_ERROR(Send(command));
  return Answer(limit);
}

absl::Status ClientProcess::Send(absl::string_view command) {
  return SendPacket(control_, command).status();
}

absl::StatusOr<std::string> ClientProcess::Answer(absl::Duration limit) {
  if (!WaitReadable(control_, limit).ok()) {
    return absl::DeadlineExceededError(absl::StrCat("client_program has not answered within ",
                                                    absl::FormatDuration(limit), "; it wrote:\n",
                                                    process_.ErrorOutput()));
  }
  std::array<char, 4096> buffer;
  const absl::StatusOr<ReceivedPacket> packet = ReceivePacket(control_, absl::MakeSpan(buffer), 0);
  if (packet.ok() && packet->kind == ReceivedPacket::Kind::kMessage) {
    return ParseAnswer(absl::string_view(buffer.data(), packet->size));
  }
  HB_ASSIGN_OR_RETURN(const ExitStatus end, process_.Wait(kStartLimit));
  std::ostringstream text;
  text << "client_program ended with " << end << "; it wrote:\n" << process_.ErrorOutput();
  return absl::AbortedError(text.str());
}

bool ClientProcess::HasAnswer() const { return WaitReadable(control_, absl::ZeroDuration()).ok(); }

absl::StatusOr<ExitStatus> ClientProcess::Quit(absl::Duration limit) {
  control_.Reset();
  return process_.Wait(limit);
}

std::string FieldOf(absl::string_view answer, absl::string_view key) {
  const std::string prefix = absl::StrCat(key, "=");
  for (absl::string_view field : absl::StrSplit(answer, ' ')) {
    if (absl::ConsumePrefix(&field, prefix)) return std::string(field);
  }
  return "";
}

uint64_t NumberOf(absl::string_view answer, absl::string_view key) {
  uint64_t number = 0;
  return absl::SimpleAtoi(FieldOf(answer, key), &number) ? number : 0;
}

}  // namespace heapbroker
