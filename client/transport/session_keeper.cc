// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/session_keeper.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/transport/backoff.h"
#include "client/transport/cancel_hook.h"
#include "client/transport/process_mark.h"
#include "client/transport/start_thread.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/posix/epoll.h"

namespace heapbroker {
namespace {

// Those who wait for a session try again to have a thread that connects.
constexpr absl::Duration kStartThreadAgain = absl::Milliseconds(100);

}  // namespace

struct SessionKeeper::State : std::enable_shared_from_this<State> {
  State(const ClientOptions& client_options, std::unique_ptr<ReconnectPace> reconnect_pace)
      : options(client_options),
        pace(std::move(reconnect_pace)),
        watches(options.handlers.on_lost != nullptr || options.handlers.on_reconnected != nullptr),
        backoff(options.reconnect) {}

  // Makes `connection` the current one.
  void Install(const std::shared_ptr<Connection>& connection);
  // What Install gives every connection: starts the thread where there is none.
  void Lost();
  // The thread, unless there is one, or there need be none any more.
  //   RESOURCE_EXHAUSTED  there can be none now
  absl::Status Start();
  void Stop();

  // The thread's.
  void Run();
  // The session that was lost; null when the thread is to end.
  std::shared_ptr<Connection> AwaitLoss();
  void Tell(Connection& lost);
  // Null when the thread is to end.
  std::shared_ptr<Connection> ConnectAgain();

  // While there is no session.
  absl::Status Unavailable();

  const pid_t pid = getpid();
  const ClientOptions options;  // With the directory that the first daemon was found in.
  const std::unique_ptr<ReconnectPace> pace;
  const std::shared_ptr<Cancellation> stop = std::make_shared<Cancellation>();
  std::optional<WakeUp> stop_watching;  // Where `watches`; constant.

  // The thread's own.
  bool watches;
  Backoff backoff;
  absl::Duration session_began;

  Mutex mutex;
  CondVar changed;
  std::shared_ptr<Connection> current ABSL_GUARDED_BY(mutex);
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  bool running ABSL_GUARDED_BY(mutex) = false;  // The thread has not decided to end.
  std::thread thread ABSL_GUARDED_BY(mutex);
  int failures ABSL_GUARDED_BY(mutex) = 0;  // Since the session was lost.
  absl::Status last_failure ABSL_GUARDED_BY(mutex);
};

void SessionKeeper::State::Install(const std::shared_ptr<Connection>& connection) {
  connection->SetLossHandler([weak = weak_from_this()] {
    if (const std::shared_ptr<State> state = weak.lock()) state->Lost();
  });
  session_began = pace->Now();
  {
    MutexLock lock(mutex);
    current = connection;
    failures = 0;
    last_failure = absl::OkStatus();
  }
  changed.NotifyAll();
}

void SessionKeeper::State::Lost() {
  // Whoever asks for a session next starts it where there can be no thread now.
  Start().IgnoreError();
  // Those who wait for a session learn that there will be none.
  changed.NotifyAll();
}

absl::Status SessionKeeper::State::Start() {
  std::thread ended;
  absl::StatusOr<std::thread> started;
  {
    MutexLock lock(mutex);
    if (stopping || running) return absl::OkStatus();
    ended = std::move(thread);
    started = StartThread([self = shared_from_this()] { self->Run(); });
    running = started.ok();
    if (running) thread = *std::move(started);
  }
  // It has nothing left to do.
  if (ended.joinable()) ended.join();
  return started.status();
}

void SessionKeeper::State::Stop() {
  std::thread ending;
  {
    MutexLock lock(mutex);
    stopping = true;
    ending = std::move(thread);
  }
  changed.NotifyAll();
  if (stop_watching) stop_watching->Signal();
  stop->Cancel();
  pace->Interrupt();
  if (!ending.joinable()) return;
  if (ending.get_id() == std::this_thread::get_id()) {
    ending.detach();
  } else {
    ending.join();
  }
}

void SessionKeeper::State::Run() {
  while (const std::shared_ptr<Connection> lost = AwaitLoss()) {
    Tell(*lost);
    if (!options.reconnect.enabled) return;
    const std::shared_ptr<Connection> next = ConnectAgain();
    if (next == nullptr) return;
    Install(next);
    if (options.handlers.on_reconnected) {
      options.handlers.on_reconnected(
          {.session_id = next->session_id(), .same_devices = next->devices() == lost->devices()});
    }
  }
}

std::shared_ptr<Connection> SessionKeeper::State::AwaitLoss() {
  while (true) {
    std::shared_ptr<Connection> connection;
    {
      MutexLock lock(mutex);
      if (stopping) return nullptr;
      if (current->lost()) return current;
      if (!watches) {
        // Whoever notices the loss from now on starts another thread.
        running = false;
        return nullptr;
      }
      connection = current;
    }
    const absl::Status ended = connection->AwaitEnd(absl::InfiniteDuration(), &stop_watching->fd());
    // Where the kernel cannot say it, calls notice.
    if (!ended.ok() && !absl::IsCancelled(ended)) watches = false;
  }
}

void SessionKeeper::State::Tell(Connection& lost) {
  backoff.SessionLasted(pace->Now() - session_began);
  Holdings::All held = lost.holdings().Close();
  {
    MutexLock lock(mutex);
    if (stopping) return;
  }
  if (!options.handlers.on_lost) return;
  options.handlers.on_lost({.session_id = lost.session_id(),
                            .connection_number = lost.number(),
                            .leases = std::move(held.leases),
                            .segments = std::move(held.segments)});
}

std::shared_ptr<Connection> SessionKeeper::State::ConnectAgain() {
  while (true) {
    pace->Pause(backoff.Next(pace->Chance()));
    if (stop->cancelled()) return nullptr;
    absl::StatusOr<std::shared_ptr<Connection>> connection =
        Connection::Connect(options, CallLimits(options.call_timeout, stop));
    MutexLock lock(mutex);
    if (stopping) return nullptr;
    if (connection.ok()) return *std::move(connection);
    ++failures;
    last_failure = connection.status();
  }
}

absl::Status SessionKeeper::State::Unavailable() {
  const absl::Status ended = SessionEndedError();
  if (!options.reconnect.enabled) {
    return absl::UnavailableError(absl::StrCat(ended.message(), "; connect again for one"));
  }
  MutexLock lock(mutex);
  if (failures == 0) {
    return absl::UnavailableError(
        absl::StrCat(ended.message(), "; the library is connecting again"));
  }
  return absl::UnavailableError(
      absl::StrCat(ended.message(), "; the library is connecting again, and has failed ", failures,
                   failures == 1 ? " time: " : " times, at last: ", last_failure.ToString()));
}

SessionKeeper::SessionKeeper(std::shared_ptr<State> state) : state_(std::move(state)) {}

SessionKeeper::~SessionKeeper() {
  if (CheckProcess().ok()) {
    state_->Stop();
    return;
  }
  // The thread is the parent's, and so may be the lock.
  new std::shared_ptr<State>(std::move(state_));
}

absl::StatusOr<std::shared_ptr<SessionKeeper>> SessionKeeper::Connect(
    const ClientOptions& options, const CallLimits& limits, std::unique_ptr<ReconnectPace> pace) {
  HB_RETURN_IF_ERROR(CheckReconnectOptions(options.reconnect));
  HB_ASSIGN_OR_RETURN(const std::shared_ptr<Connection> connection,
                      Connection::Connect(options, limits));
  ClientOptions same_daemon = options;
  // And no other one that may have come up meanwhile.
  same_daemon.runtime_dir = connection->runtime_dir();
  const auto state = std::make_shared<State>(same_daemon, std::move(pace));
  if (state->watches) {
    HB_ASSIGN_OR_RETURN(state->stop_watching, WakeUp::Create());
  }
  state->Install(connection);
  if (state->watches) HB_RETURN_IF_ERROR(state->Start());
  return std::shared_ptr<SessionKeeper>(new SessionKeeper(state));
}

absl::Status SessionKeeper::CheckProcess() const { return CheckNotForked(state_->pid); }

std::shared_ptr<Connection> SessionKeeper::Last() const {
  if (!CheckProcess().ok()) return nullptr;
  MutexLock lock(state_->mutex);
  return state_->current;
}

absl::StatusOr<std::shared_ptr<Connection>> SessionKeeper::Current() {
  HB_RETURN_IF_ERROR(CheckProcess());
  std::shared_ptr<Connection> connection = Last();
  if (connection->Alive()) return connection;
  state_->Start().IgnoreError();
  return state_->Unavailable();
}

absl::StatusOr<std::shared_ptr<Connection>> SessionKeeper::Await(const CallLimits& limits) {
  HB_RETURN_IF_ERROR(CheckProcess());
  State& state = *state_;
  const CancelHook hook(limits.cancellation(), [&state] {
    // Whoever has looked before it was cancelled is waiting by now.
    { MutexLock lock(state.mutex); }
    state.changed.NotifyAll();
  });
  while (true) {
    std::shared_ptr<Connection> connection = Last();
    if (connection->Alive()) return connection;
    const bool started = state.Start().ok();
    if (!reconnects()) return state.Unavailable();
    MutexLock lock(state.mutex);
    if (state.current != connection) continue;
    if (limits.cancelled()) return absl::CancelledError("the wait for a session was cancelled");
    const absl::Duration left =
        std::min(limits.left(), started ? absl::Hours(24) : kStartThreadAgain);
    if (left <= absl::ZeroDuration()) break;
    state.changed.WaitFor(state.mutex, absl::ToChronoNanoseconds(left));
  }
  const absl::Status unavailable = state.Unavailable();
  return absl::DeadlineExceededError(absl::StrCat(
      "no session within ", absl::FormatDuration(limits.timeout()), ": ", unavailable.message()));
}

absl::Duration SessionKeeper::call_timeout() const { return state_->options.call_timeout; }

bool SessionKeeper::reconnects() const { return state_->options.reconnect.enabled; }

}  // namespace heapbroker
