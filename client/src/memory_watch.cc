// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_watch.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "client/src/idle_reports.h"
#include "client/transport/connection.h"
#include "client/transport/convert.h"
#include "common/base/mutex.h"

namespace heapbroker {

using Stream = grpc::ClientReaderWriter<v1::WatchRequest, v1::WatchEvent>;

// Shared with the thread that reads, which outlives a watch that one of its own
// handlers destroys.
struct MemoryWatch::State {
  // Until the stream ends: reads, calls the handlers, and has another thread write.
  void Run();
  void WriteReports(Stream& stream);
  void Handle(const v1::WatchEvent& event);
  // The next report once it is due; unset when the watch ends.
  std::optional<std::vector<IdleMemory>> NextReport();
  void SetEnded() {
    {
      MutexLock lock(mutex);
      ended = true;
    }
    changed.NotifyAll();
  }
  bool IsDestroyed() {
    MutexLock lock(mutex);
    return destroyed;
  }

  std::shared_ptr<Connection> connection;
  WatchHandlers handlers;
  grpc::ClientContext context;
  std::thread thread;

  Mutex mutex;
  CondVar changed;
  IdleReports reports ABSL_GUARDED_BY(mutex);
  bool ended ABSL_GUARDED_BY(mutex) = false;
  bool destroyed ABSL_GUARDED_BY(mutex) = false;
};

void MemoryWatch::State::Run() {
  connection->Prepare(context, absl::InfiniteDuration());
  const std::unique_ptr<Stream> stream = connection->Watch(context);
  std::thread writer([&] { WriteReports(*stream); });
  v1::WatchEvent event;
  while (stream->Read(&event)) Handle(event);
  SetEnded();
  // Finish is for when nobody writes any more.
  writer.join();
  const absl::Status status = Connection::Translate(stream->Finish());
  if (!IsDestroyed() && handlers.on_end) handlers.on_end(status);
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
  while (!ended) {
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

std::unique_ptr<MemoryWatch> MemoryWatch::Start(std::shared_ptr<Connection> connection,
                                                WatchHandlers handlers) {
  auto state = std::make_shared<State>();
  state->connection = std::move(connection);
  state->handlers = std::move(handlers);
  state->thread = std::thread([state] { state->Run(); });
  return std::unique_ptr<MemoryWatch>(new MemoryWatch(std::move(state)));
}

MemoryWatch::MemoryWatch(std::shared_ptr<State> state) : state_(std::move(state)) {}

MemoryWatch::~MemoryWatch() {
  if (!state_->connection->CheckProcess().ok()) {
    // The threads are the parent's: nothing here can be waited for, or ended.
    new std::shared_ptr<State>(std::move(state_));
    return;
  }
  {
    MutexLock lock(state_->mutex);
    state_->destroyed = true;
  }
  state_->context.TryCancel();
  if (state_->thread.get_id() == std::this_thread::get_id()) {
    state_->thread.detach();
  } else {
    state_->thread.join();
  }
}

void MemoryWatch::ReportIdle(std::vector<IdleMemory> idle) {
  // In a forked child another thread's lock would never be free.
  if (!state_->connection->CheckProcess().ok()) return;
  {
    MutexLock lock(state_->mutex);
    state_->reports.Set(std::move(idle));
  }
  state_->changed.NotifyAll();
}

}  // namespace heapbroker
