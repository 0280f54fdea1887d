// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Descriptors that were sent and perhaps not read.
#ifndef DAEMON_SESSION_UNREAD_DESCRIPTORS_H_
#define DAEMON_SESSION_UNREAD_DESCRIPTORS_H_

#include <algorithm>
#include <cstddef>
#include <utility>

namespace heapbroker {

// The kernel counts a user's unread descriptors, all sessions together, and sends
// none beyond RLIMIT_NOFILE. So that nobody uses that up, several go in one packet
// only while few are on their way; one always may, and a session has at most one
// packet unread.
//
// Not thread-safe; belongs to the session thread.
class UnreadDescriptors {
 public:
  // Those of one packet. Destroyed, or assigned another, when it has been read.
  class Claim {
   public:
    Claim() = default;
    Claim(Claim&& other) noexcept
        : all_(std::exchange(other.all_, nullptr)), count_(std::exchange(other.count_, 0)) {}
    Claim& operator=(Claim&& other) noexcept {
      std::swap(all_, other.all_);
      std::swap(count_, other.count_);
      return *this;
    }
    ~Claim() {
      if (all_ != nullptr) all_->count_ -= count_;
    }

   private:
    friend class UnreadDescriptors;
    Claim(UnreadDescriptors& all, size_t count) : all_(&all), count_(count) {}
    UnreadDescriptors* all_ = nullptr;
    size_t count_ = 0;
  };

  // As long as at most `few` are unread, a packet may carry several. Must outlive all
  // claims.
  explicit UnreadDescriptors(size_t few) : few_(few) {}
  UnreadDescriptors(const UnreadDescriptors&) = delete;
  UnreadDescriptors& operator=(const UnreadDescriptors&) = delete;

  // How many of `wanted` may go in one packet; at least one.
  size_t Room(size_t wanted) const {
    return std::clamp<size_t>(few_ - std::min(few_, count_), 1, wanted);
  }
  Claim Add(size_t count) {
    count_ += count;
    return Claim(*this, count);
  }

 private:
  const size_t few_;
  size_t count_ = 0;
};

}  // namespace heapbroker
#endif  // DAEMON_SESSION_UNREAD_DESCRIPTORS_H_
