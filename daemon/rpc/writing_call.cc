// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/writing_call.h"

#include <utility>

namespace heapbroker {

WritingCall::WritingCall(LiveCalls& live)
    : Call(live), written_tag_(static_cast<QueueTag::Handler>(&WritingCall::OnWritten)) {}

void WritingCall::SetSource(Source source) { source_ = std::move(source); }

void WritingCall::Open() {
  if (!BeginOperation()) return;
  bool ending = false;
  {
    MutexLock lock(write_mutex_);
    ending = std::exchange(writing_, true);
  }
  if (ending) return EndOperation();
  StartOpen(written_tag_.Arm(shared_from_this()));
}

void WritingCall::Changed() {
  {
    MutexLock lock(write_mutex_);
    changed_ = true;
  }
  Pump();
}

bool WritingCall::BeginWrite() {
  MutexLock lock(write_mutex_);
  if (writing_ || !changed_) return false;
  writing_ = true;
  changed_ = false;
  return true;
}

void WritingCall::Pump() {
  // A change from here on makes the source be asked again after this write.
  while (BeginWrite()) {
    if (!BeginOperation()) return EndWrite();
    if (std::optional<Next> next = source_()) {
      if (next->more) {
        MutexLock lock(write_mutex_);
        changed_ = true;
      }
      return StartWrite(next->message, written_tag_.Arm(shared_from_this()));
    }
    EndWrite();
    EndOperation();
  }
}

void WritingCall::OnWritten(bool ok) {
  EndWrite();
  // After a failure the call is over, and the notice of that is on its way.
  if (ok) Pump();
  EndOperation();
}

void WritingCall::EndWrite() {
  std::optional<grpc::Status> finish;
  {
    MutexLock lock(write_mutex_);
    writing_ = false;
    finish = std::exchange(finish_, std::nullopt);
  }
  if (finish.has_value()) StartFinish(*finish);
}

void WritingCall::Finish(const grpc::Status& status) {
  if (BeginFinish()) StartFinish(status);
}

void WritingCall::StartFinish(const grpc::Status& status) {
  {
    MutexLock lock(write_mutex_);
    if (writing_) {
      finish_ = status;
      return;
    }
    writing_ = true;
  }
  StartEnd(status, ArmFinish());
}

void WritingCall::Finished(bool /*ok*/) {}

}  // namespace heapbroker
