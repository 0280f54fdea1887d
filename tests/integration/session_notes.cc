// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/integration/session_notes.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace heapbroker {

SessionHandlers SessionNotes::Handlers() {
  SessionHandlers handlers;
  handlers.on_lost = [this](const LostSession& lost) {
    std::vector<uint64_t> leases;
    for (const ImportFacts& lease : lost.leases) leases.push_back(lease.block_id);
    std::vector<std::string> segments;
    for (const LostSegment& segment : lost.segments) segments.push_back(segment.name);
    Note(lost_, absl::StrCat("session=", lost.session_id, " leases=", absl::StrJoin(leases, ","),
                             " segments=", absl::StrJoin(segments, ",")));
  };
  handlers.on_reconnected = [this](const NewSession& session) {
    Note(reconnected_, absl::StrCat("session=", session.session_id,
                                    " same-devices=", session.same_devices ? 1 : 0));
  };
  return handlers;
}

void SessionNotes::Note(std::deque<std::string>& notes, std::string text) {
  {
    MutexLock lock(mutex_);
    notes.push_back(std::move(text));
  }
  changed_.NotifyAll();
}

std::string SessionNotes::Next(std::deque<std::string>& notes) {
  MutexLock lock(mutex_);
  while (notes.empty()) changed_.Wait(mutex_);
  std::string text = std::move(notes.front());
  notes.pop_front();
  return text;
}

}  // namespace heapbroker
