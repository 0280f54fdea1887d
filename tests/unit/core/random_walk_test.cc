// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Thousands of random calls in random order, with device jobs, failures and
// deaths in between; after each of them what the core promises must hold.
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tests/unit/core/core_fixture.h"

namespace heapbroker {
namespace {

class RandomWalkTest : public CoreTest, public ::testing::WithParamInterface<uint32_t> {
 protected:
  // What tells memory apart, whatever the ids of its leases. Kept for ever here, so
  // that no address is used twice.
  using Memory = std::shared_ptr<const ExportedHandle>;

  struct Client {
    TenantId tenant;
    std::map<BlockId, Memory> blocks;
    std::vector<SegmentId> segments;  // One entry for each attachment.
    std::set<SegmentId> filling;
    std::set<CallId> calls;  // Deferred, and not told of yet.
  };

  uint32_t Draw(uint32_t below) {
    return std::uniform_int_distribution<uint32_t>(0, below - 1)(random_);
  }
  Client& AnyClient(SessionId* session) {
    auto it = clients_.begin();
    std::advance(it, Draw(static_cast<uint32_t>(clients_.size())));
    *session = it->first;
    return it->second;
  }

  void Connect() {
    const TenantId tenant(1000 + Draw(3));
    clients_.emplace(NewSession(tenant), Client{tenant, {}, {}, {}, {}});
  }

  // Memory that a tenant has had is never anyone else's.
  Memory CheckOwner(SessionId session, const Client& client, BlockId block) {
    const absl::StatusOr<FetchedBlock> fetched = broker_->Fetch(session, block);
    EXPECT_THAT(fetched, IsOk());
    if (!fetched.ok()) return nullptr;
    const auto [owner, is_new] = owner_of_.emplace(fetched->exported, client.tenant);
    EXPECT_EQ(owner->second, client.tenant);
    return fetched->exported;
  }

  void Granted(SessionId session, Client& client, const Grant& grant) {
    for (const GrantedBlock& block : grant.blocks) {
      EXPECT_TRUE(ids_.insert(block.id).second) << "an id used again: " << block.id;
      const Memory memory = CheckOwner(session, client, block.id);
      EXPECT_TRUE(held_.insert(memory).second) << "leased to two: " << block.id;
      client.blocks.emplace(block.id, memory);
      EXPECT_GE(block.allocation_size, block.size);
    }
  }
  void Opened(SessionId session, Client& client, const SegmentView& view) {
    for (const GrantedBlock& block : view.blocks) CheckOwner(session, client, block.id);
    client.segments.push_back(view.id);
    if (view.writer) client.filling.insert(view.id);
  }

  void Collect() {
    for (auto& [session, client] : clients_) {
      for (auto it = client.calls.begin(); it != client.calls.end();) {
        if (!events_.Has(*it)) {
          ++it;
          continue;
        }
        if (is_open_.contains(*it)) {
          if (events_.segment(*it).ok()) Opened(session, client, *events_.segment(*it));
        } else if (events_.grant(*it).ok()) {
          Granted(session, client, *events_.grant(*it));
        }
        it = client.calls.erase(it);
      }
    }
  }

  void DoAllocate() {
    SessionId session;
    Client& client = AnyClient(&session);
    std::vector<BlockRequest> requests(1 + Draw(3));
    for (BlockRequest& request : requests) {
      request = Ask(KiB(1 + Draw(Draw(4) == 0 ? 40000 : 2000)));
      request.zeroed = Draw(8) == 0;
    }
    const CallId call = NewCall();
    auto outcome = broker_->Allocate(session, call, AllocateOf(requests));
    if (!outcome.ok()) {
      EXPECT_THAT(outcome, StatusIs(absl::StatusCode::kResourceExhausted, ""));
    } else if (auto* grant = std::get_if<Grant>(&*outcome)) {
      Granted(session, client, *grant);
    } else {
      client.calls.insert(call);
      ++deferred_;
    }
  }

  void DoOpen() {
    SessionId session;
    Client& client = AnyClient(&session);
    const std::string name(1, static_cast<char>('a' + Draw(4)));
    OpenSegmentRequest request{name, OpenMode::kCreateOrAttach, MiB(1 + name[0] % 16),
                               MemoryKind::kDeviceLocal};
    if (Draw(3) == 0) {
      const OpenMode mode = Draw(2) == 0 ? OpenMode::kAttachWait : OpenMode::kAttach;
      request = {name, mode, Bytes(), MemoryKind::kDeviceLocal};
    }
    const CallId call = NewCall();
    auto outcome = broker_->OpenSegment(session, call, request);
    if (!outcome.ok()) return;
    if (auto* view = std::get_if<SegmentView>(&*outcome)) {
      Opened(session, client, *view);
    } else {
      client.calls.insert(call);
      is_open_.insert(call);
      if (request.mode == OpenMode::kAttach) attaching_.emplace(call, name);
      ++deferred_;
    }
  }

  // Whoever attaches without waiting for a segment to be made waits for one that
  // is being filled, and not after its writer has given up.
  void CheckAttachers() const {
    std::set<std::pair<TenantId, std::string>> existing;
    for (const SegmentStats& segment : broker_->ListSegments()) {
      existing.emplace(segment.tenant, segment.name);
    }
    for (const auto& [session, client] : clients_) {
      for (CallId call : client.calls) {
        const auto attaching = attaching_.find(call);
        if (attaching == attaching_.end()) continue;
        EXPECT_TRUE(existing.contains({client.tenant, attaching->second}))
            << "call " << call << " waits for \"" << attaching->second << "\", which is gone";
      }
    }
  }

  void DoRelease() {
    SessionId session;
    Client& client = AnyClient(&session);
    if (client.blocks.empty()) return;
    const auto [block, memory] = *client.blocks.begin();
    EXPECT_THAT(Release(session, block), IsOk());
    client.blocks.erase(block);
    held_.erase(memory);
  }

  void DoSealOrClose() {
    SessionId session;
    Client& client = AnyClient(&session);
    if (client.segments.empty()) return;
    const SegmentId segment = client.segments.back();
    if (client.filling.erase(segment) > 0 && Draw(4) != 0) {
      EXPECT_THAT(broker_->SealSegment(session, segment, Checksum{1, 1}), IsOk());
      return;
    }
    client.segments.pop_back();
    EXPECT_THAT(broker_->CloseSegment(session, segment), IsOk());
  }

  void DoCancel() {
    SessionId session;
    Client& client = AnyClient(&session);
    if (!client.calls.empty()) broker_->Cancel(session, *client.calls.begin());
  }

  void DoDie() {
    SessionId session;
    Client& client = AnyClient(&session);
    for (const auto& [block, memory] : client.blocks) held_.erase(memory);
    // Its calls end, too; only nobody looks.
    clients_.erase(session);
    broker_->EndSession(session);
    Connect();
  }

  void Step() {
    const uint32_t what = Draw(100);
    if (what < 30) {
      DoAllocate();
    } else if (what < 50) {
      DoRelease();
    } else if (what < 60) {
      DoOpen();
    } else if (what < 70) {
      DoSealOrClose();
    } else if (what < 73) {
      DoCancel();
    } else if (what < 75) {
      DoDie();
    } else if (what < 76) {
      device_->FailAllocations(absl::ResourceExhaustedError("driver"), 1 + Draw(3));
    } else if (what < 77) {
      device_->FailClears(absl::InternalError("clear"), 1);
    } else if (what < 89) {
      executor_.RunAllocation();
    } else {
      executor_.RunFree();
    }
    Collect();
  }

  std::mt19937 random_{GetParam()};
  std::map<SessionId, Client> clients_;
  std::map<Memory, TenantId> owner_of_;
  std::set<Memory> held_;
  std::set<BlockId> ids_;  // Of all leases there were.
  std::set<CallId> is_open_;
  std::map<CallId, std::string> attaching_;  // The segment's name.
  size_t deferred_ = 0;
};

TEST_P(RandomWalkTest, KeepsEveryPromiseAndEndsEmpty) {
  LedgerOptions options;
  options.admission.count_limits = Allocations(40);
  options.admission.pools = {{"type 0", 0, true, false, {.max_free_allocation_count = 8}}};
  Start(MiB(96), SimulatedDeviceInfo(), options);
  device_->PadSizes(KiB(4), Bytes(GetParam() % 2 == 0 ? 0 : 64));
  for (int i = 0; i < 6; ++i) Connect();
  for (int i = 0; i < 4000 && !HasFailure(); ++i) {
    Step();
    CheckSums();
    CheckAttachers();
  }
  EXPECT_LE(device_->counts().peak_bytes, MiB(96));
  EXPECT_LE(device_->counts().peak_live, 40u);
  EXPECT_GT(device_->counts().frees, 100u);

  while (!clients_.empty()) {
    const SessionId session = clients_.begin()->first;
    clients_.erase(session);
    broker_->EndSession(session);
  }
  broker_->EvictEverything();
  executor_.RunAll();
  // Segments that were sealed while the last jobs ran.
  broker_->EvictEverything();
  executor_.RunAll();
  CheckSums();
  EXPECT_EQ(device_->counts().live, 0u);
  EXPECT_EQ(broker_->Stats().allocations, 0u);
  EXPECT_EQ(Heap().in_use, Bytes());
  EXPECT_TRUE(broker_->ListSegments().empty());
  // Every deferred call was told of, and none twice.
  EXPECT_EQ(events_.count(), deferred_);
  EXPECT_EQ(events_.distinct(), deferred_);
}

// How many walks: HEAPBROKER_WALK_SEEDS, or as many as a quick run has time for.
// What is no number above zero makes none, which gtest reports as a failure.
uint32_t Seeds() {
  const char* const text = std::getenv("HEAPBROKER_WALK_SEEDS");
  return text == nullptr ? 12 : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWalkTest, ::testing::Range(1u, 1 + Seeds()));

}  // namespace
}  // namespace heapbroker
