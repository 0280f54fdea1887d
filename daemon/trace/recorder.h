// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Writes down what happens on the devices.
#ifndef DAEMON_TRACE_RECORDER_H_
#define DAEMON_TRACE_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/posix/unique_fd.h"
#include "daemon/core/stats.h"
#include "daemon/trace/name_hash.h"
#include "daemon/trace/trace.h"

namespace heapbroker {

struct RecorderOptions {
  // The longest file; the footer, a few hundred bytes for a pool, comes on top.
  Bytes limit = MiB(64);
  // Memory for turns that are not yet written.
  Bytes queue = MiB(16);
};

// Writes turns to a file from a thread of its own, so that whoever makes them
// never waits for a disk: what comes faster than it can be written is lost, and
// counted in the footer. At its limit, and where the file cannot be written, the
// recording ends and the daemon goes on.
//
// Thread-safe, except that Finish and the destructor are called by one thread.
class Recorder {
 public:
  // Told why a recording is not whole, on the writing thread or that of Finish. Must
  // not block.
  using Warn = std::function<void(std::string)>;

  // Makes the file `path`, for its owner only, and writes the header. What is there
  // already is never written over, nor is a symbolic link followed: the daemon may
  // run as root, and the directory be another's.
  //   FAILED_PRECONDITION  something of that name exists
  //   INVALID_ARGUMENT     the header does not fit a record, or the limit
  //   others               as PosixError
  static absl::StatusOr<std::unique_ptr<Recorder>> Start(const std::string& path,
                                                         const TraceStart& start,
                                                         const RecorderOptions& options, Warn warn);
  // As Finish without statistics.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void Record(uint32_t device, RecordedTurn turn);

  // Writes what was recorded until now and the footer, and closes the file. `stats`
  // is each device's after its last turn, or empty where that is not known. Later
  // turns are dropped. Finishing twice is harmless.
  void Finish(absl::Span<const DeviceStats> stats);

 private:
  Recorder(UniqueFd file, const TraceStart& start, const RecorderOptions& options, Warn warn);

  void Run();
  bool WriteTurns(const std::vector<TracedTurn>& turns);
  bool WriteRecord(const std::string& record);
  void End(const std::string& why);
  void WriteFooter(absl::Span<const DeviceStats> stats);
  absl::Status WriteAll(const std::string& bytes);

  const absl::Time start_;
  const RecorderOptions options_;
  const Warn warn_;
  const NameHashKey key_ = RandomNameHashKey();

  // The writing thread's, and Finish's after it has ended.
  UniqueFd file_;
  Bytes written_;
  bool truncated_ = false;

  Mutex mutex_;
  CondVar changed_;
  std::vector<TracedTurn> queue_ ABSL_GUARDED_BY(mutex_);
  Bytes queued_ ABSL_GUARDED_BY(mutex_);
  uint64_t lost_ ABSL_GUARDED_BY(mutex_) = 0;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;  // Nothing is taken any more.
  std::thread thread_;                          // Last: it uses all of the others.
};

}  // namespace heapbroker
#endif  // DAEMON_TRACE_RECORDER_H_
