// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The part of ReferenceModel that looks at the time: who is refused too early, who waits
// for too long, and whether others were asked for memory before.
#include <algorithm>

#include "gtest/gtest.h"
#include "tests/model/reference_model.h"

namespace heapbroker {

ReferenceModel::Terms ReferenceModel::TermsOf(const Call& call) {
  if (const auto* allocate = std::get_if<AllocateCall>(&call.what)) {
    return {allocate->request.wait_until, allocate->request.answer_by};
  }
  const OpenSegmentRequest& open = std::get<OpenCall>(call.what).request;
  return {open.wait_until, open.answer_by};
}

// Nobody waits any longer, not even for what is being freed.
bool ReferenceModel::IsLate(const RefusedCall& refused) const {
  return !refused.at_once && TermsOf(ended_[refused.call]).answer_by <= now_;
}

// Nobody who may wait is refused for what others hold before his time is up.
void ReferenceModel::CheckInTime(const RefusedCall& refused) {
  const Call& call = ended_[refused.call];
  const Terms terms = TermsOf(call);
  if (!terms.wait_until || *terms.wait_until <= call.asked_at) return;
  EXPECT_GE(now_, std::min(*terms.wait_until, terms.answer_by)) << Sentence(refused.refusal);
}

// Whoever keeps idle memory that would do must be asked for it before anyone is
// refused.
void ReferenceModel::CheckAskedFirst(const RefusedCall& refused) {
  const Refusal& refusal = refused.refusal;
  if (refusal.limit != LimitKind::kHeapBudget) return;
  if (TermsOf(ended_[refused.call]).answer_by <= now_) return;
  Bytes idle;
  for (const auto& [session, bytes] : idle_in_clients_[*refusal.heap]) {
    const AskedBack& asked = asked_back_[{*refusal.heap, session}];
    idle += asked.until <= now_ ? bytes : bytes - std::min(bytes, asked.bytes);
  }
  EXPECT_TRUE(idle == Bytes() || refusal.requested > refusal.free + idle.count())
      << FormatBytes(idle) << " are idle in clients: " << Sentence(refusal);
}

void ReferenceModel::CheckDeadlines(const DeviceStats& stats) const {
  size_t late = 0, in_time = 0, queued = 0;
  for (const HeapStats& heap : stats.heaps) queued += heap.waiting_requests;
  const bool any_asked =
      std::any_of(asked_back_.begin(), asked_back_.end(),
                  [this](const auto& asked) { return asked.second.until > now_; });
  for (const auto& [id, call] : calls_) {
    const Terms terms = TermsOf(call);
    const bool may_wait = terms.answer_by > now_;
    // Who waits for a segment may become its writer, and wait for memory, later.
    if (std::holds_alternative<OpenCall>(call.what)) {
      if (may_wait) ++in_time;
      continue;
    }
    if (!may_wait) ++late;
    if (may_wait && (any_asked || terms.wait_until.value_or(now_) > now_)) ++in_time;
  }
  // The device may be at work for them.
  EXPECT_LE(late, may_ask_driver_.size()) << "calls wait that nobody waits for";
  EXPECT_LE(queued, in_time) << "calls are in a queue whose time is up";
}

}  // namespace heapbroker
