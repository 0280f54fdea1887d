// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_block.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/transport/call_limits.h"
#include "client/transport/connection.h"
#include "client/transport/turn.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

struct MemoryBlock::State {
  std::shared_ptr<Connection> connection;
  ImportFacts facts;
  Turn fetching;
  UniqueFd fd;  // Belongs to whoever has the turn.
  // Its number once it is there. It never changes then; and no lock is in the way of a
  // forked child, whose descriptor it is, too.
  std::atomic<int> known = -1;
};

MemoryBlock::MemoryBlock(std::shared_ptr<Connection> connection, const ImportFacts& facts)
    : state_(std::make_unique<State>()) {
  state_->connection = std::move(connection);
  state_->facts = facts;
}

MemoryBlock::~MemoryBlock() = default;

const ImportFacts& MemoryBlock::facts() const { return state_->facts; }

const BrokerDevice& MemoryBlock::device() const {
  return state_->connection->devices()[state_->facts.device_index];
}

uint64_t MemoryBlock::connection_number() const { return state_->connection->number(); }

absl::Duration MemoryBlock::call_timeout() const { return state_->connection->call_timeout(); }

absl::StatusOr<int> MemoryBlock::fd(const CallOptions& call) const {
  if (const int fd = state_->known; fd >= 0) return fd;
  // In a forked child another thread's turn would never end.
  HB_RETURN_IF_ERROR(state_->connection->CheckProcess());
  const CallLimits limits(call, call_timeout());
  TurnHolder turn(
      state_->fetching, limits,
      absl::StrCat("another thread fetched the descriptor of block ", state_->facts.block_id));
  HB_RETURN_IF_ERROR(turn.status());
  if (const int fd = state_->known; fd >= 0) return fd;
  HB_ASSIGN_OR_RETURN(state_->fd, state_->connection->Fetch(state_->facts.block_id, limits));
  state_->known = state_->fd.get();
  return state_->fd.get();
}

}  // namespace heapbroker
