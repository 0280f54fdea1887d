// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_block.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/transport/connection.h"
#include "client/transport/turn.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

struct MemoryBlock::State {
  std::shared_ptr<Connection> connection;
  ImportFacts facts;
  Turn fetching;
  Mutex mutex;
  UniqueFd fd ABSL_GUARDED_BY(mutex);

  // Once there, the descriptor never changes, so its number may leave the lock.
  int Known() {
    MutexLock lock(mutex);
    return fd.get();
  }
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

absl::StatusOr<int> MemoryBlock::fd() const {
  if (const int fd = state_->Known(); fd >= 0) return fd;
  // In a forked child another thread's turn would never end.
  HB_RETURN_IF_ERROR(state_->connection->CheckProcess());
  TurnHolder turn(state_->fetching, state_->connection->call_timeout());
  if (!turn.holds()) {
    return absl::DeadlineExceededError(absl::StrCat(
        "another thread is still fetching the descriptor of block ", state_->facts.block_id));
  }
  if (const int fd = state_->Known(); fd >= 0) return fd;
  HB_ASSIGN_OR_RETURN(UniqueFd fetched, state_->connection->Fetch(state_->facts.block_id));
  MutexLock lock(state_->mutex);
  state_->fd = std::move(fetched);
  return state_->fd.get();
}

}  // namespace heapbroker
