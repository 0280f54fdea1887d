// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/support/daemon_process.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/posix/unix_socket.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/support/wait_for.h"

namespace heapbroker {
namespace {

bool Accepts(const std::string& socket_path) {
  return ConnectUnix(socket_path, SocketKind::kStream, absl::Seconds(1)).ok();
}

bool Serves(grpc::health::v1::Health::Stub& health) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(1));
  grpc::health::v1::HealthCheckResponse response;
  return health.Check(&context, {}, &response).ok() &&
         response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
}

}  // namespace

std::string BuiltProgramPath(const std::string& name) {
  return absl::StrCat(HEAPBROKER_BIN_DIR, "/", name);
}
std::string HeapbrokerdPath() { return BuiltProgramPath("heapbrokerd"); }

absl::StatusOr<std::unique_ptr<DaemonProcess>> DaemonProcess::Start(DaemonOptions options) {
  std::unique_ptr<TempDir> own_dir;
  if (options.runtime_dir.empty()) {
    own_dir = std::make_unique<TempDir>();
    options.runtime_dir = own_dir->path();
  }
  ProcessOptions process_options{.command = {options.program, "--runtime-dir", options.runtime_dir},
                                 .environment = options.environment,
                                 .uid = options.uid,
                                 .input_pipe = false};
  process_options.command.insert(process_options.command.end(), options.flags.begin(),
                                 options.flags.end());
  HB_ASSIGN_OR_RETURN(Process process, Process::Start(process_options));
  std::unique_ptr<DaemonProcess> daemon(
      new DaemonProcess(std::move(own_dir), options.runtime_dir, std::move(process)));
  HB_RETURN_IF_ERROR(daemon->AwaitReady(options.ready_within));
  return daemon;
}

absl::Status DaemonProcess::AwaitReady(absl::Duration limit) {
  const std::string socket_path = absl::StrCat(runtime_dir_, "/broker.sock");
  const absl::Time deadline = absl::Now() + limit;
  // First a plain connect: a gRPC channel that finds no socket waits a second
  // before it tries again.
  bool ended = false;
  const auto accepts = [&] { return (ended = !process_.Running()) || Accepts(socket_path); };
  bool ready = WaitFor(accepts, limit) && !ended;
  if (ready) {
    const auto health = grpc::health::v1::Health::NewStub(grpc::CreateChannel(
        absl::StrCat("unix:", socket_path), grpc::InsecureChannelCredentials()));
    const auto serves = [&] { return (ended = !process_.Running()) || Serves(*health); };
    ready = WaitFor(serves, deadline - absl::Now()) && !ended;
  }
  if (ready) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "heapbrokerd ", ended ? "ended before it was ready" : "is not ready", "; its log:\n", Log()));
}

absl::StatusOr<ExitStatus> DaemonProcess::Stop(absl::Duration limit) {
  // One that has ended already tells so by its exit status.
  if (process_.Running()) HB_RETURN_IF_ERROR(process_.Signal(SIGTERM));
  return process_.Wait(limit);
}

}  // namespace heapbroker
