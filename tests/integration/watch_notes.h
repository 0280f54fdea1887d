// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What the daemon told client_program, in order.
#ifndef TESTS_INTEGRATION_WATCH_NOTES_H_
#define TESTS_INTEGRATION_WATCH_NOTES_H_

#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "heapbroker/client.h"
#include "heapbroker/memory_watch.h"

namespace heapbroker {

// Thread-safe.
class WatchNotes {
 public:
  static absl::StatusOr<std::unique_ptr<WatchNotes>> Start(Client& client);

  // DEVICE HEAP BYTES, as all that is idle.
  absl::Status Report(absl::Span<const std::string> words);

  // "device=0 heap=0 bytes=4096"; waits for it. The error is the watch's end.
  absl::StatusOr<std::string> NextGiveBack() { return Next(give_backs_); }
  // "segment=NAME device=0"; the same.
  absl::StatusOr<std::string> NextSealed() { return Next(sealed_); }

 private:
  WatchNotes() = default;
  void Note(std::deque<std::string>& notes, std::string text);
  absl::StatusOr<std::string> Next(std::deque<std::string>& notes);

  Mutex mutex_;
  CondVar changed_;
  absl::Status end_ ABSL_GUARDED_BY(mutex_);
  // The mutex guards both.
  std::deque<std::string> give_backs_;
  std::deque<std::string> sealed_;
  std::unique_ptr<MemoryWatch> watch_;  // Ends before what its handlers use.
};

}  // namespace heapbroker
#endif  // TESTS_INTEGRATION_WATCH_NOTES_H_
