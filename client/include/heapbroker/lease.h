// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The right to use one block, for as long as the object lives.
#ifndef HEAPBROKER_LEASE_H_
#define HEAPBROKER_LEASE_H_

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "heapbroker/cancellation.h"
#include "heapbroker/export.h"
#include "heapbroker/memory_block.h"
#include "heapbroker/types.h"

namespace heapbroker {

class Connection;

// Returns its block to the daemon when it ends. May outlive the Client that it
// came from: it shares the connection.
//
// Giving a block back promises that all work on it, on the host and on the
// device, has completed: the next lease of the same tenant may get it at once.
// Destroy every DeviceBuffer of the block first.
//
// Move-only; not thread-safe, but its MemoryBlock is.
class HEAPBROKER_EXPORT Lease {
 public:
  // Holds nothing, as after a move or a release.
  Lease() = default;
  // For Client.
  Lease(std::shared_ptr<Connection> connection, std::shared_ptr<const MemoryBlock> block);
  // Gives the block back. Waits at most the call timeout, and after an error goes on as
  // ReleaseLater; in a forked child it does nothing, since the lease is the parent's.
  ~Lease();
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;

  // False after a move or a release.
  bool held() const { return block_ != nullptr; }

  // Held, but its session was found to have ended: the daemon does not know it any more.
  // What was imported stays valid.
  bool lost() const;

  // Null when nothing is held.
  const std::shared_ptr<const MemoryBlock>& block() const { return block_; }

  // Of the block; zeros when nothing is held.
  const ImportFacts& facts() const;

  // As MemoryBlock::fd(); FAILED_PRECONDITION when nothing is held.
  absl::StatusOr<int> fd(const CallOptions& call = {}) const;

  // Gives the block back now. OK when nothing is held. After an error the lease
  // is still held and can be released again, except after NOT_FOUND and
  // UNAVAILABLE, which mean that it is gone.
  //   NOT_FOUND          the daemon does not know this lease
  //   UNAVAILABLE        the session has ended, and all its leases with it; or the
  //                      daemon could not be reached, and it goes as by ReleaseLater
  //   DEADLINE_EXCEEDED  the daemon did not answer in time
  //   CANCELLED          by `call.cancellation`; it may have been released
  //   RESOURCE_EXHAUSTED   this process has no free descriptor to reach the daemon
  //   FAILED_PRECONDITION  this process was forked off the one that connected
  absl::Status Release(const CallOptions& call = {});

  // Gives the block back without waiting for the daemon: on a thread of the library,
  // which tries again for as long as the session lasts. Nothing is held then, except in a
  // forked child, where this does nothing.
  void ReleaseLater();

 private:
  friend absl::Status ReleaseAll(std::vector<Lease> leases, const CallOptions& call);

  // Nothing is held any more, and there is nothing to give back.
  void Forget();
  void GiveUp();

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<const MemoryBlock> block_;
};

// Gives many leases back in as few calls as possible (one for each connection,
// device and 256 leases); `call` is for all of them together. Returns the first error;
// goes on with the others after it. What could not be given back because of one, also
// where `call` was cancelled or its time over before anything was asked for, goes later,
// as by Lease::ReleaseLater.
HEAPBROKER_EXPORT absl::Status ReleaseAll(std::vector<Lease> leases, const CallOptions& call = {});

}  // namespace heapbroker
#endif  // HEAPBROKER_LEASE_H_
