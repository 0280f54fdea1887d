// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_watch.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "client/src/idle_reports.h"
#include "client/transport/backoff.h"
#include "client/transport/cancel_hook.h"
#include "client/transport/connection.h"
#include "client/transport/convert.h"
#include "client/transport/session_keeper.h"
#include "client/transport/start_thread.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/steady_time.h"
#include "common/posix/epoll.h"

namespace heapbroker {

using Stream = grpc::ClientReaderWriter<v1::WatchRequest, v1::WatchEvent>;

namespace {

// Ends of a stream that the daemon has not ended itself, as far as anyone can tell. A
// server that shuts down cancels its calls, perhaps before the session has ended; and
// RESOURCE_EXHAUSTED is a process that had no descriptor left to reach the daemon, or
// could have no thread to write, or a watch that said too much at once, all of which pass.
bool MayBeTheConnections(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnknown(status) || absl::IsInternal(status) ||
         absl::IsCancelled(status) || absl::IsResourceExhausted(status);
}

}  // namespace

// Shared with the thread that reads, which outlives a watch that one of its own
// handlers destroys.
struct MemoryWatch::State {
  State(std::shared_ptr<SessionKeeper> session_keeper, WatchHandlers watch_handlers, WakeUp wake_up)
      : keeper(std::move(session_keeper)),
        handlers(std::move(watch_handlers)),
        stopped(std::move(wake_up)) {}

  // One session after the other, until there is nothing more to be told. `connection` is
  // the first; null: the next that there will be.
  void Run(std::shared_ptr<Connection> connection);
  // Says why; unset when the watch was destroyed.
  std::optional<absl::Status> RunToTheEnd(std::shared_ptr<Connection> connection);
  // Until the stream ends: reads, calls the handlers, and has another thread write.
  absl::Status Follow(Connection& connection);
  void WriteReports(Stream& stream);
  void Handle(const v1::WatchEvent& event);
  // The next report once it is due; unset when the stream ends.
  std::optional<std::vector<IdleMemory>> NextReport();
  void SetStreamEnded(bool ended);
  bool IsDestroyed() const { return stop->cancelled(); }

  const std::shared_ptr<SessionKeeper> keeper;
  const WatchHandlers handlers;
  const std::shared_ptr<Cancellation> stop = std::make_shared<Cancellation>();
  WakeUp stopped;  // The same, for those who wait in the kernel.
  std::thread thread;

  Mutex mutex;
  CondVar changed;
  IdleReports reports ABSL_GUARDED_BY(mutex);
  bool stream_ended ABSL_GUARDED_BY(mutex) = false;
};

void MemoryWatch::State::SetStreamEnded(bool ended) {
  {
    MutexLock lock(mutex);
    stream_ended = ended;
  }
  changed.NotifyAll();
}

absl::Status MemoryWatch::State::Follow(Connection& connection) {
  grpc::ClientContext context;
  connection.Prepare(context, absl::InfiniteDuration());
  const CancelHook hook(stop, [&context] { context.TryCancel(); });
  const CancelHook loss_hook(connection.ended(), [&context] { context.TryCancel(); });
  // From here on they cancel what there is to cancel.
  if (hook.cancelled() || loss_hook.cancelled()) return absl::CancelledError("ended already");
  SetStreamEnded(false);
  const std::unique_ptr<Stream> stream = connection.Watch(context);
  absl::StatusOr<std::thread> writer = StartThread([&] { WriteReports(*stream); });
  if (!writer.ok()) {
    context.TryCancel();
    stream->Finish();
    return std::move(writer).status();
  }
  v1::WatchEvent event;
  while (stream->Read(&event)) Handle(event);
  SetStreamEnded(true);
  // Finish is for when nobody writes any more.
  writer->join();
  return connection.Conclude(stream->Finish());
}

std::optional<absl::Status> MemoryWatch::State::RunToTheEnd(
    std::shared_ptr<Connection> connection) {
  // Of streams that end while their session goes on.
  Backoff backoff{ReconnectOptions()};
  while (!IsDestroyed()) {
    if (connection == nullptr) {
      HB_ASSIGN_OR_RETURN(connection, keeper->Await(CallLimits(absl::InfiniteDuration(), stop)));
    }
    const absl::Duration began = SteadyNow();
    const absl::Status ended = Follow(*connection);
    if (IsDestroyed()) break;
    if (connection->Alive()) {
      if (!MayBeTheConnections(ended)) return ended;
      // A daemon that stops ends the session a little later.
      backoff.SessionLasted(SteadyNow() - began);
      connection->AwaitEnd(backoff.Next(0), &stopped.fd()).IgnoreError();
    }
    const bool lost = connection->lost();
    if (lost) connection = nullptr;
    {
      MutexLock lock(mutex);
      if (lost) {
        reports = IdleReports();
      } else {
        reports.SayAgain();
      }
    }
    if (lost && !keeper->reconnects()) return SessionEndedError();
    if (lost && handlers.on_session_lost) handlers.on_session_lost(SessionEndedError());
  }
  return std::nullopt;
}

void MemoryWatch::State::Run(std::shared_ptr<Connection> connection) {
  const std::optional<absl::Status> end = RunToTheEnd(std::move(connection));
  if (end && !IsDestroyed() && handlers.on_end) handlers.on_end(*end);
}

void MemoryWatch::State::Handle(const v1::WatchEvent& event) {
  if (IsDestroyed()) return;
  if (event.has_give_back() && handlers.on_give_back) {
    handlers.on_give_back(FromMessage(event.give_back()));
  }
  if (event.has_segment_sealed() && handlers.on_segment_sealed) {
    const v1::SegmentSealed& sealed = event.segment_sealed();
    handlers.on_segment_sealed({.segment_id = sealed.segment_id(),
                                .name = sealed.name(),
                                .device_index = sealed.device_index()});
  }
}

std::optional<std::vector<IdleMemory>> MemoryWatch::State::NextReport() {
  MutexLock lock(mutex);
  while (!stream_ended) {
    const std::optional<IdleReports::Time> due = reports.due();
    const IdleReports::Time now = std::chrono::steady_clock::now();
    if (!due) {
      changed.Wait(mutex);
    } else if (*due > now) {
      changed.WaitFor(mutex, *due - now);
    } else {
      return reports.Take(now);
    }
  }
  return std::nullopt;
}

void MemoryWatch::State::WriteReports(Stream& stream) {
  while (const std::optional<std::vector<IdleMemory>> report = NextReport()) {
    // False: the stream has ended, and the other thread learns why.
    if (!stream.Write(ToMessage(*report))) return;
  }
}

absl::StatusOr<std::unique_ptr<MemoryWatch>> MemoryWatch::Start(
    std::shared_ptr<SessionKeeper> keeper, WatchHandlers handlers) {
  HB_ASSIGN_OR_RETURN(WakeUp stopped, WakeUp::Create());
  auto state = std::make_shared<State>(std::move(keeper), std::move(handlers), std::move(stopped));
  // So that the loss of the session in which the watch was asked for is told, however
  // early it comes; not that of one which was lost by then.
  std::shared_ptr<Connection> first = state->keeper->Last();
  if (first->lost()) first = nullptr;
  HB_ASSIGN_OR_RETURN(state->thread, StartThread([state, first] { state->Run(first); }));
  return std::unique_ptr<MemoryWatch>(new MemoryWatch(std::move(state)));
}

MemoryWatch::MemoryWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

MemoryWatch::~MemoryWatch() {
  if (!state_->keeper->CheckProcess().ok()) {
    // The threads are the parent's: nothing here can be waited for, or ended.
    new std::shared_ptr<State>(std::move(state_));
    return;
  }
  state_->stop->Cancel();
  state_->stopped.Signal();
  if (state_->thread.get_id() == std::this_thread::get_id()) {
    state_->thread.detach();
  } else {
    state_->thread.join();
  }
}

void MemoryWatch::ReportIdle(std::vector<IdleMemory> idle) {
  // In a forked child another thread's lock would never be free.
  if (!state_->keeper->CheckProcess().ok()) return;
  {
    MutexLock lock(state_->mutex);
    state_->reports.Set(std::move(idle));
  }
  state_->changed.NotifyAll();
}

}  // namespace heapbroker
