// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Which segments a session may still need.
#ifndef CLIENT_TRANSPORT_SEGMENT_CLAIMS_H_
#define CLIENT_TRANSPORT_SEGMENT_CLAIMS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"

namespace heapbroker {

// The daemon counts how often a session is attached to a segment, and all its
// attachments have the same id. So a close must not be repeated after one that ended
// without an answer, as long as anyone else in the session has the segment or is opening
// it: the first may have arrived, and the second would take theirs. It is kept until
// they are through. Thread-safe.
class SegmentClaims {
 public:
  using Key = std::pair<uint32_t, std::string>;  // Device, name.

  // From the beginning of an OpenSegment call until it has failed, or until what it
  // attached is closed or handed over to be closed later.
  void Add(const Key& key);
  // Returns the ids of the closes that were kept and may be repeated now.
  std::vector<uint64_t> Remove(const Key& key);

  // Whether the close of this id may be repeated, as long as no claim is added; if not,
  // it is kept.
  bool MayRepeatClose(const Key& key, uint64_t segment_id);

 private:
  struct Entry {
    int claims = 0;
    std::vector<uint64_t> kept;
  };
  Mutex mutex_;
  std::map<Key, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // With claims only.
};

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_SEGMENT_CLAIMS_H_
