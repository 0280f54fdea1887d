// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The daemon's own limit on a heap.
#ifndef DAEMON_CORE_HEAP_BUDGET_H_
#define DAEMON_CORE_HEAP_BUDGET_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "daemon/core/device_memory.h"
#include "daemon/core/stats.h"
#include "heapbroker/units.h"

namespace heapbroker {

// The limit as configured.
struct HeapLimit {
  Bytes bytes;
  // Where the driver says what it offers, at most this many thousandths of that,
  // too. Unset for a limit that an administrator set.
  std::optional<uint32_t> driver_per_mille = std::nullopt;
};

// What a driver reported, put right, and what was wrong with it; "" if nothing was.
struct CheckedHeapReport {
  std::optional<HeapReport> report;  // Unset where nothing of it can be used.
  std::string complaint;
};
// A budget of zero is taken as no answer; one over the heap's size, and a usage over
// it, as the size. All three have been seen.
CheckedHeapReport CheckHeapReport(uint32_t heap, Bytes size, const HeapReport& report);

// How long a size that the driver refused is taken for more than it has. It may be for
// good, where the driver only advertises it, or until another program gives something
// back.
inline constexpr absl::Duration kRefusalIsRemembered = absl::Minutes(1);

// Counts bytes from the moment they are promised until the device call that
// frees them has returned. The driver's own success is no limit: drivers
// over-commit, and lose the device later.
//
//   |<----------------------- limit() -------------------------->|
//   |<-------------- now(): less where the driver offers less -->|
//   | in use                        | available()                |
//   |            | being freed      |
//                | promised: to orders that wait for those bytes only |
//
// Bookkeeping only; guarded by its owner's mutex.
class HeapBudget {
 public:
  HeapBudget(const HeapLimit& limit, const HeapInfo& info);

  // The static limit: what does not fit in there never fits.
  Bytes limit() const { return limit_.bytes; }
  // The limit at the moment: at most limit().
  Bytes now() const;
  Bytes in_use() const { return in_use_; }
  Bytes available() const;
  Bytes being_freed() const { return being_freed_; }
  Bytes promised() const { return promised_; }

  // What is neither in use nor promised, when all that is being freed has been; and
  // when `evicted` of what is in use has been, too.
  Bytes uncommitted() const { return UncommittedWithout(Bytes()); }
  Bytes UncommittedWithout(Bytes evicted) const;

  // Takes all of `bytes` or nothing, and nothing that is promised.
  [[nodiscard]] bool TryTake(Bytes bytes);
  // `bytes` must have been taken before.
  void Return(Bytes bytes) { in_use_ -= bytes; }
  // Undoes Return, whatever the limits say by now.
  void Retake(Bytes bytes) { in_use_ += bytes; }
  // Of taken bytes: the driver has them to free; and is through with them.
  void StartFreeing(Bytes bytes) { being_freed_ += bytes; }
  void Freed(Bytes bytes);

  // Promises bytes that are not there yet; and what ends a promise: Redeem takes
  // `bytes`, at least what was promised, and is false where they are not there.
  void Promise(Bytes bytes) { promised_ += bytes; }
  void BreakPromise(Bytes bytes) { promised_ -= bytes; }
  [[nodiscard]] bool Redeem(Bytes promised, Bytes bytes);

  // What the driver says now. Returns what was wrong with it, if that was not
  // returned before.
  std::string Update(uint32_t heap, const HeapReport& report);
  // The driver refused `bytes` although they were taken, and nothing was left to evict
  // for them. True where no request as small was refused before.
  bool NoteDriverRefusal(Bytes bytes, absl::Time now);
  // It made an allocation for that much.
  void NoteDriverAllocation(Bytes bytes);
  // Whether it refused that much, or less, a moment ago, and has not made as much since:
  // to evict for it would help as little as it did then.
  bool WasRefusedLately(Bytes bytes, absl::Time now) const;

  HeapStats Stats() const;

 private:
  const HeapLimit limit_;
  const HeapInfo info_;
  Bytes in_use_;
  Bytes being_freed_;  // A part of `in_use_`.
  Bytes promised_;
  Bytes peak_;
  std::optional<HeapReport> driver_;
  std::optional<Bytes> smallest_driver_refusal_;
  struct Refused {
    Bytes bytes;
    absl::Time until;
  };
  std::optional<Refused> refused_;  // Lately.
  bool complained_ = false;
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_HEAP_BUDGET_H_
