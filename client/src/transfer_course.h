// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// How far a transfer is.
#ifndef CLIENT_SRC_TRANSFER_COURSE_H_
#define CLIENT_SRC_TRANSFER_COURSE_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/transport/call_limits.h"
#include "heapbroker/transfers.h"
#include "heapbroker/units.h"

namespace heapbroker {

// Where the pieces of a transfer come from or go to, in order: host memory of that size.
using ProducePiece = absl::FunctionRef<absl::Status(void* piece, Bytes size)>;
using ConsumePiece = absl::FunctionRef<absl::Status(const void* piece, Bytes size)>;

// Its pieces, all of one size but the last, and whether it may go on. Not thread-safe.
class TransferCourse {
 public:
  // `piece` is more than zero. `options` must outlive it.
  TransferCourse(Bytes total, Bytes piece, const TransferOptions& options)
      : total_(total),
        piece_(piece),
        options_(options),
        limits_(options.timeout, options.cancellation) {}

  uint64_t pieces() const {
    const uint64_t whole = total_.count() / piece_.count();
    return StartOf(whole) == total_ ? whole : whole + 1;
  }
  Bytes StartOf(uint64_t piece) const { return Bytes(piece * piece_.count()); }
  Bytes SizeOf(uint64_t piece) const { return std::min(piece_, total_ - StartOf(piece)); }

  const CallLimits& limits() const { return limits_; }

  // CANCELLED or DEADLINE_EXCEEDED where it may not.
  absl::Status CheckMayGoOn() const {
    if (limits_.cancelled()) {
      return absl::CancelledError(absl::StrCat("the transfer was cancelled after ", HowFar()));
    }
    if (limits_.left() > absl::ZeroDuration()) return absl::OkStatus();
    return absl::DeadlineExceededError(absl::StrCat("the transfer was ended after ",
                                                    absl::FormatDuration(limits_.timeout()),
                                                    " and ", HowFar()));
  }

  // A piece of that size has arrived.
  void Advance(Bytes size) {
    done_ += size;
    if (options_.on_progress) options_.on_progress({.done = done_, .total = total_});
  }

 private:
  std::string HowFar() const {
    return absl::StrCat(done_.count(), " of ", total_.count(), " bytes");
  }

  const Bytes total_;
  const Bytes piece_;
  const TransferOptions& options_;
  const CallLimits limits_;
  Bytes done_;
};

}  // namespace heapbroker
#endif  // CLIENT_SRC_TRANSFER_COURSE_H_
