// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/memory_block.h"

#include <atomic>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/transport/call_limits.h"
#include "client/transport/connection.h"
#include "client/transport/turn.h"
#include "common/base/status_macros.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

namespace {

std::string FetchingByAnother(uint64_t block_id) {
  return absl::StrCat("another thread fetched the descriptor of block ", block_id);
}

}  // namespace

struct MemoryBlock::State {
  // Of one connection.
  static absl::Status FetchAll(Connection& from, absl::Span<State* const> states,
                               const CallLimits& limits);

  // For whoever has the turn.
  void Keep(UniqueFd fetched) {
    fd = std::move(fetched);
    known = fd.get();
  }

  std::shared_ptr<Connection> connection;
  ImportFacts facts;
  Turn fetching;
  UniqueFd fd;  // Belongs to whoever has the turn.
  // Its number once it is there. It never changes then; and no lock is in the way of a
  // forked child, whose descriptor it is, too.
  std::atomic<int> known = -1;
};

absl::Status MemoryBlock::State::FetchAll(Connection& from, absl::Span<State* const> states,
                                          const CallLimits& limits) {
  std::vector<uint64_t> ids;
  for (const State* state : states) ids.push_back(state->facts.block_id);
  for (size_t done = 0; done < ids.size();) {
    // Without the turns of these blocks, so that two threads cannot wait for each
    // other's: at worst a descriptor comes twice.
    HB_ASSIGN_OR_RETURN(std::vector<UniqueFd> fetched,
                        from.Fetch(absl::MakeConstSpan(ids).subspan(done), limits));
    for (UniqueFd& fd : fetched) {
      State& state = *states[done++];
      TurnHolder turn(state.fetching, limits, FetchingByAnother(state.facts.block_id));
      HB_RETURN_IF_ERROR(turn.status());
      if (state.known < 0) state.Keep(std::move(fd));
    }
  }
  return absl::OkStatus();
}

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
  TurnHolder turn(state_->fetching, limits, FetchingByAnother(state_->facts.block_id));
  HB_RETURN_IF_ERROR(turn.status());
  if (const int fd = state_->known; fd >= 0) return fd;
  HB_ASSIGN_OR_RETURN(std::vector<UniqueFd> fetched,
                      state_->connection->Fetch({state_->facts.block_id}, limits));
  state_->Keep(std::move(fetched[0]));
  return state_->fd.get();
}

absl::Status MemoryBlock::FetchAll(absl::Span<const MemoryBlock* const> blocks,
                                   const CallOptions& call) {
  std::map<Connection*, std::vector<State*>> missing;
  for (const MemoryBlock* block : blocks) {
    if (block->state_->known < 0) {
      missing[block->state_->connection.get()].push_back(block->state_.get());
    }
  }
  if (missing.empty()) return absl::OkStatus();
  const CallLimits limits(call, blocks[0]->call_timeout());
  for (const auto& [connection, states] : missing) {
    HB_RETURN_IF_ERROR(connection->CheckProcess());
    HB_RETURN_IF_ERROR(State::FetchAll(*connection, states, limits));
  }
  return absl::OkStatus();
}

}  // namespace heapbroker
