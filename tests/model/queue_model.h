// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: the rules of waiting for memory, as plainly as can be.
#ifndef TESTS_MODEL_QUEUE_MODEL_H_
#define TESTS_MODEL_QUEUE_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "daemon/core/requests.h"
#include "heapbroker/units.h"

namespace heapbroker {

struct QueueRules {
  std::vector<Bytes> heaps;  // Their budgets.
  uint64_t allocations = 0;
  absl::Duration head_timeout;
  absl::Duration give_back_time;
};

// A device that does at once whatever it is asked for, and pools that keep nothing: so
// all that is left to decide is who gets what is free, and that can be foretold to the
// call. It keeps lists and searches them, and shares no code with the core.
class QueueModel {
 public:
  explicit QueueModel(QueueRules rules) : rules_(std::move(rules)), queues_(rules_.heaps.size()) {}

  struct Need {
    uint32_t heap = 0;
    Bytes bytes;
  };
  struct Request {
    CallId call;
    SessionId session;
    TenantId tenant{0};
    Priority priority = Priority::kNormal;
    std::optional<absl::Time> wait_until;
    absl::Time answer_by;
    std::vector<Need> needs;
  };

  // Before each of the calls below, with its time.
  void Begin(absl::Time now);

  // `heap`: in whose queue the core had it wait, as far as it did. One whose memory it
  // lacks, and of several any.
  void Ask(const Request& request, std::optional<uint32_t> heap);
  // A request that waits is asked for again by another call, on that one's terms.
  void Repeat(CallId from, const Request& request);
  // `held`: what the session still holds on the same heap.
  void Release(SessionId session, const Need& block, Bytes held);
  void Cancel(CallId call);
  void EndSession(SessionId session, const std::vector<Need>& held);
  // What the session keeps idle on the one heap: there must be no other.
  void Report(SessionId session, Bytes idle);
  void Tick();

  // What follows from the last of those.
  const std::map<CallId, absl::StatusCode>& answers() const { return answers_; }
  const std::multimap<SessionId, Bytes>& asks() const { return asks_; }
  // When time alone changes something.
  absl::Time NextChange() const;

  std::vector<CallId> Waiting() const;
  const Request& waiting(CallId call) const { return waiters_.at(call).request; }

 private:
  // Of two things that have one, the one with the lower place comes first.
  using Place = uint64_t;
  struct Waiter {
    Request request;
    uint32_t heap = 0;
    absl::Time until;
    absl::Time due;
    Place arrived = 0;
    Place place = 0;
    bool rests = false;
    Bytes asked;  // Of clients, and how long that is not asked for again.
    absl::Time asked_until = absl::InfinitePast();
  };
  struct Queue {
    std::optional<CallId> head;
    absl::Time elected_at;
    Place elected = 0;
    std::map<TenantId, Place> turns;  // Of tenants with orders that do not rest.
    std::optional<Place> rest;        // When it comes to that, the time of rest begins.
    absl::Time rest_until = absl::InfiniteFuture();
  };
  struct Cache {
    Bytes idle;
    Bytes asked;
    absl::Time asked_until = absl::InfinitePast();
  };
  struct Lack {
    Bytes requested;
    Bytes free;
  };

  void Elect();
  void ElectOn(uint32_t heap);
  void BeginRest(uint32_t heap);
  void EndRest(uint32_t heap);
  bool AnyOf(uint32_t heap, std::optional<TenantId> tenant, bool rests) const;
  void PutLast(Waiter& waiter);
  void Leave(CallId call);
  void Answer(CallId call, absl::StatusCode code) { answers_.emplace(call, code); }
  void Grant(const Request& request);
  void Free(const Need& block);

  bool MayWait(const Request& request) const;
  bool NeverFits(const Request& request) const;
  std::vector<const Request*> HeadsBefore(const Request& request) const;
  bool Fits(const Request& request, bool may_wait);
  // Of the one heap; unset where it is not bytes that it lacks.
  std::optional<Lack> LackOf(const Request& request, bool may_wait);
  std::optional<absl::Time> WaitUntil(const Waiter& waiter, bool may_wait);
  void StayUntil(Waiter& waiter, absl::Time until);
  void AskClients(Waiter& waiter, bool may_wait);
  static void SetIdle(Cache& cache, Bytes idle);
  Bytes Askable(const Cache& cache) const;
  void Attend(CallId call);
  void Pump();
  bool PumpOn(uint32_t heap);
  bool Serve(CallId call);

  const QueueRules rules_;
  absl::Time now_;
  std::map<CallId, Waiter> waiters_;
  std::vector<Queue> queues_;
  std::map<uint32_t, Bytes> used_;
  uint64_t allocations_ = 0;
  std::map<SessionId, Cache> caches_;
  Place last_ = 0;
  std::map<CallId, absl::StatusCode> answers_;
  std::multimap<SessionId, Bytes> asks_;
};

}  // namespace heapbroker
#endif  // TESTS_MODEL_QUEUE_MODEL_H_
