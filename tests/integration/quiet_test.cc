// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A daemon that nobody uses sleeps. gRPC wakes up 120 times a minute whatever one
// does, and 180 times once it has had a connection, so the measure is an empty
// server beside it.
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/integration/raw_session.h"

namespace heapbroker {
namespace {

constexpr absl::Duration kWindow = absl::Seconds(30);
constexpr double kMoreWakeUpsPerMinute = 6;

enum class Threads { kAll, kAllButGrpcTimers };

// Times that threads slept and woke up again: each of them gave the processor up.
double WakeUps(pid_t pid, Threads threads) {
  uint64_t sum = 0;
  for (const auto& task :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"))) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    // Cut to 15 characters by the kernel.
    const bool timer = name == "grpc_global_tim" || name == "timer_manager";
    if (timer && threads == Threads::kAllButGrpcTimers) continue;
    std::ifstream status(task.path() / "status");
    for (std::string key; status >> key;) {
      uint64_t count = 0;
      if (key == "voluntary_ctxt_switches:" && status >> count) sum += count;
    }
  }
  EXPECT_GT(sum, 0u);
  return static_cast<double>(sum);
}

class QuietTest : public DaemonFixture {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(
        Process server, Process::Start({.command = {BuiltProgramPath("idle_grpc_server"), Socket()},
                                        .environment = {},
                                        .uid = std::nullopt,
                                        .input_pipe = true}));
    server_ = std::make_unique<Process>(std::move(server));
    ASSERT_TRUE(WaitFor([&] { return server_->Output() == "ready\n"; })) << server_->ErrorOutput();
  }

  std::string Socket() const { return dir_.File("idle.sock"); }

  // How often `daemon` wakes up in a minute beyond what the empty server does,
  // both observed at the same time.
  double MoreWakeUpsPerMinute(pid_t daemon, Threads threads) {
    const double server_before = WakeUps(server_->pid(), threads);
    const double daemon_before = WakeUps(daemon, threads);
    // What is observed is time that passes: there is nothing else to wait for.
    absl::SleepFor(kWindow);
    const double of_server = WakeUps(server_->pid(), threads) - server_before;
    const double of_daemon = WakeUps(daemon, threads) - daemon_before;
    RecordProperty("server_wake_ups", absl::StrCat(of_server));
    RecordProperty("daemon_wake_ups", absl::StrCat(of_daemon));
    return (of_daemon - of_server) / absl::ToDoubleMinutes(kWindow);
  }

  std::unique_ptr<Process> server_;
};

TEST_F(QuietTest, ANewDaemonWakesHardlyMoreThanAnEmptyServer) {
  // Its readiness is asked for at the session socket, which is the last to be up:
  // a gRPC connection would change how often gRPC wakes up.
  ASSERT_OK_AND_ASSIGN(
      Process daemon,
      Process::Start({.command = {HeapbrokerdPath(), "--runtime-dir", runtime_dir()}}));
  ASSERT_TRUE(WaitFor([&] {
    auto socket = RawSocket::Connect(SocketPath("session.sock"));
    return socket.ok() && socket->Ask(HelloPacket("ready")).ok();
  })) << daemon.ErrorOutput();
  ASSERT_TRUE(AwaitNoConnections(daemon.pid()));
  EXPECT_LE(MoreWakeUpsPerMinute(daemon.pid(), Threads::kAll), kMoreWakeUpsPerMinute);
}

TEST_F(QuietTest, ADaemonWhoseClientsHaveGoneIsQuietAgain) {
  // From its first connection on, gRPC's two timer threads wake up 120 to 180
  // times a minute, which differs from one process to the next and from one
  // minute to the next. All others can be compared.
  const auto channel =
      grpc::CreateChannel(absl::StrCat("unix:", Socket()), grpc::InsecureChannelCredentials());
  ASSERT_TRUE(
      channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
  ASSERT_NO_FATAL_FAILURE(StartDaemon());
  auto client = StartClient();
  ASSERT_TRUE(client != nullptr);
  ASSERT_THAT(client->Ask("cycle 10 1000000"), IsOk());
  client.reset();
  ASSERT_TRUE(AwaitNoConnections(daemon_->pid()));
  EXPECT_LE(MoreWakeUpsPerMinute(daemon_->pid(), Threads::kAllButGrpcTimers),
            kMoreWakeUpsPerMinute);
}

}  // namespace
}  // namespace heapbroker
