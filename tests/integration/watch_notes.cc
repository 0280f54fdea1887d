// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/integration/watch_notes.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace heapbroker {

absl::StatusOr<std::unique_ptr<WatchNotes>> WatchNotes::Start(Client& client) {
  std::unique_ptr<WatchNotes> notes(new WatchNotes());
  WatchHandlers handlers;
  handlers.on_give_back = [self = notes.get()](const GiveBackRequest& request) {
    self->Note(self->give_backs_,
               absl::StrCat("device=", request.device_index, " heap=", request.heap_index,
                            " bytes=", request.bytes.count()));
  };
  handlers.on_segment_sealed = [self = notes.get()](const SegmentSealed& sealed) {
    self->Note(self->sealed_,
               absl::StrCat("segment=", sealed.name, " device=", sealed.device_index));
  };
  handlers.on_end = [self = notes.get()](const absl::Status& status) {
    {
      MutexLock lock(self->mutex_);
      self->end_ = status.ok() ? absl::UnavailableError("the watch ended") : status;
    }
    self->changed_.NotifyAll();
  };
  HB_ASSIGN_OR_RETURN(notes->watch_, client.Watch(std::move(handlers)));
  return notes;
}

absl::Status WatchNotes::Report(absl::Span<const std::string> words) {
  IdleMemory idle;
  uint64_t bytes = 0;
  if (words.size() != 3 || !absl::SimpleAtoi(words[0], &idle.device_index) ||
      !absl::SimpleAtoi(words[1], &idle.heap_index) || !absl::SimpleAtoi(words[2], &bytes)) {
    return absl::InvalidArgumentError("give a device, a heap and bytes");
  }
  idle.bytes = Bytes(bytes);
  watch_->ReportIdle({idle});
  return absl::OkStatus();
}

void WatchNotes::Note(std::deque<std::string>& notes, std::string text) {
  {
    MutexLock lock(mutex_);
    notes.push_back(std::move(text));
  }
  changed_.NotifyAll();
}

absl::StatusOr<std::string> WatchNotes::Next(std::deque<std::string>& notes) {
  MutexLock lock(mutex_);
  while (notes.empty() && end_.ok()) changed_.Wait(mutex_);
  if (notes.empty()) return end_;
  std::string text = std::move(notes.front());
  notes.pop_front();
  return text;
}

}  // namespace heapbroker
