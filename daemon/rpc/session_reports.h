// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What a session says that it keeps idle, on its way to the core.
#ifndef DAEMON_RPC_SESSION_REPORTS_H_
#define DAEMON_RPC_SESSION_REPORTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "daemon/core/devices.h"

namespace heapbroker {

// For each device, by its index: all that is idle there.
using IdleByDevice = std::vector<std::vector<IdleReport>>;

// One session's reports in the order in which they were made, though the streams
// that make them follow each other on several threads: what an older stream said
// never outlives it, and never comes after what its successor said.
//
// Thread-safe. Reports are numbered by stream; no lock is held while the core is
// called, so a thread that finds another one calling it leaves its report there.
class SessionReports {
 public:
  // `devices` must outlive this.
  SessionReports(const Devices& devices, SessionId session);

  // From here on the stream of this number reports, and nothing is idle until it
  // does. Numbers count up: one that begins after a later one has been replaced.
  void Begin(uint64_t stream);
  // Ignored from any other stream than the last one that began.
  void Report(uint64_t stream, IdleByDevice idle);
  // As a report that nothing is idle, and the last one.
  void End(uint64_t stream);

 private:
  // Leaves `idle` for whoever calls the core. True where nobody does: Drain.
  bool Leave(IdleByDevice idle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drain();
  // The next report; empty when there is none, and the core is not called any more.
  std::optional<IdleByDevice> TakeNext();

  const Devices& devices_;
  const SessionId session_;
  Mutex mutex_;
  uint64_t stream_ ABSL_GUARDED_BY(mutex_) = 0;  // The last one that began,
  bool open_ ABSL_GUARDED_BY(mutex_) = false;    // and whether it has not ended.
  std::optional<IdleByDevice> next_ ABSL_GUARDED_BY(mutex_);
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool any_idle_ ABSL_GUARDED_BY(mutex_) = false;  // As the core was told last.
};

}  // namespace heapbroker
#endif  // DAEMON_RPC_SESSION_REPORTS_H_
