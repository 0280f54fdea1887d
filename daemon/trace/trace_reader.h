// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Reads recordings, whoever wrote them.
#ifndef DAEMON_TRACE_TRACE_READER_H_
#define DAEMON_TRACE_TRACE_READER_H_

#include <cstdint>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/trace/trace.h"
#include "heapbroker/v1/trace.pb.h"

namespace heapbroker {

// What is known when the last turn has been read.
struct TraceEnd {
  std::optional<v1::TraceFooter> footer;  // Unset: the file just stops.
  uint64_t missing = 0;                   // Turns that are not in the file, by their numbers.
};

// Gives the turns of a file in the order in which they happened, of each device;
// turns of different devices have no order. Its memory is bounded, however long
// the file is and whatever it says.
//
// Not thread-safe.
class TraceReader {
 public:
  // Reads the header.
  //   NOT_FOUND            no such file, or it cannot be read
  //   INVALID_ARGUMENT     it is no recording, or its header is wrong
  //   FAILED_PRECONDITION  a recording of another format
  //   DATA_LOSS            it ends within the header
  static absl::StatusOr<std::unique_ptr<TraceReader>> Open(const std::string& path);

  const TraceStart& start() const { return start_; }

  // Unset at the end. A file that stops within a record ends before that record: a
  // daemon that was killed leaves such.
  //   DATA_LOSS  not what a recorder writes; says at which byte
  absl::StatusOr<std::optional<TracedTurn>> Next();

  // After the last turn.
  const TraceEnd& end() const { return end_; }

 private:
  // Turns of a device that cannot be given yet, since an earlier one may follow.
  struct Early {
    std::map<uint64_t, TracedTurn> turns;  // By sequence.
    std::optional<uint64_t> last;          // Given.
  };

  explicit TraceReader(const std::string& path);

  absl::Status ReadHeader();
  absl::StatusOr<std::optional<v1::TraceRecord>> ReadRecord();
  absl::Status ReadTurn();
  std::optional<TracedTurn> TakeReady();
  absl::Status Wrong(uint64_t at, absl::string_view what) const;
  bool ReadByte(unsigned char& byte);

  const std::string path_;
  std::ifstream file_;
  uint64_t position_ = 0;
  bool at_end_ = false;
  TraceStart start_;
  std::vector<Early> early_;  // By device.
  size_t turn_of_ = 0;        // The device whose turns were looked at last.
  TraceEnd end_;
};

}  // namespace heapbroker
#endif  // DAEMON_TRACE_TRACE_READER_H_
