// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/model/idle_model.h"

#include <algorithm>
#include <utility>

#include "daemon/core/block_size.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

uint64_t Of(const PoolStats& pool, NotKeptReason reason) {
  return pool.not_kept[static_cast<size_t>(reason)];
}

uint64_t More(const PoolStats& before, const PoolStats& after, NotKeptReason reason) {
  return Of(after, reason) - Of(before, reason);
}

uint64_t Hits(const DeviceStats& stats) {
  uint64_t hits = 0;
  for (const PoolStats& pool : stats.pools) hits += pool.hits;
  return hits;
}

uint64_t Requests(const DeviceStats& stats) {
  uint64_t requests = 0;
  for (const PoolStats& pool : stats.pools) requests += pool.requests;
  return requests;
}

}  // namespace

void IdleModel::Check(const DeviceStats& before, const DeviceStats& after, const Context& context) {
  // The hits of an order that was given up became idle anew.
  if (context.gave_up) complete_ = false;
  if (complete_ && asked_ && asked_->wants.size() == 1 && Hits(after) == Hits(before))
    CheckMiss(before, after);
  TakeReused(before, after);
  AddReleased();
  evicted_.clear();
  for (size_t pool = 0; pool < options_.pools.size(); ++pool) {
    SettlePool(pool, before.pools[pool], after.pools[pool], context);
  }
  if (complete_) CheckOrder(before, after, context);
  reused_.clear();
  released_.clear();
  asked_.reset();
  if (complete_) return;
  idle_ = context.all.value_or(std::vector<Block>());
  complete_ = context.all.has_value();
}

bool IdleModel::Fits(const Block& block, const Request& request, const Request::Want& want) const {
  const SizeRange range =
      AcceptableBlocks(options_.matching, want.exact, device_.max_allocation_size);
  BlockClass wanted = want.block_class;
  wanted.memory_type = block.block_class.memory_type;
  return block.tenant == request.tenant && block.block_class == wanted &&
         block.made_for >= range.smallest && block.made_for <= range.largest &&
         std::count(want.types.begin(), want.types.end(), wanted.memory_type) > 0;
}

// A request that hit nothing: in no pool that it was asked of was a block for it. Of one
// that was refused, or has to wait, that is every pool that may serve it.
void IdleModel::CheckMiss(const DeviceStats& before, const DeviceStats& after) const {
  const bool planned = Requests(after) > Requests(before);
  const Request::Want& want = asked_->wants.front();
  for (size_t i = 0; i < options_.pools.size(); ++i) {
    const ResolvedPool& pool = options_.pools[i];
    if (want.size > pool.limits.max_allocation_size || (pool.transient && !want.transient) ||
        std::count(want.types.begin(), want.types.end(), pool.memory_type) == 0) {
      continue;
    }
    if (!planned || after.pools[i].requests > before.pools[i].requests) {
      CheckMissIn(i, before.pools[i], after.pools[i]);
    }
  }
}

void IdleModel::CheckMissIn(size_t pool, const PoolStats& before, const PoolStats& after) const {
  const Request::Want& want = asked_->wants.front();
  const auto more = [&](MissReason reason) {
    const auto at = static_cast<size_t>(reason);
    return after.misses[at] > before.misses[at];
  };
  ++fits_checked_;
  for (const Block& block : idle_) {
    if (block.pool != pool) continue;
    EXPECT_FALSE(Fits(block, *asked_, want))
        << FormatBytes(want.size) << " asked for, and " << FormatBytes(block.made_for)
        << " are idle in pool " << pool;
    BlockClass wanted = want.block_class;
    wanted.memory_type = block.block_class.memory_type;
    if (block.block_class != wanted) continue;
    EXPECT_FALSE(more(MissReason::kNoIdleBlock));
    if (block.tenant != asked_->tenant) continue;
    EXPECT_FALSE(more(MissReason::kOtherTenantsOnly));
    EXPECT_FALSE(more(MissReason::kOnlyTooSmall) && block.made_for >= want.exact);
  }
}

void IdleModel::CheckBest(const Request::Want& want, const Block& taken) const {
  ++fits_checked_;
  EXPECT_TRUE(Fits(taken, *asked_, want)) << FormatBytes(taken.made_for);
  for (const Block& block : idle_) {
    if (block.pool != taken.pool || !Fits(block, *asked_, want)) continue;
    EXPECT_GE(block.made_for, taken.made_for) << "a smaller one would have done";
    if (block.made_for == taken.made_for && block.aged && taken.aged) {
      EXPECT_LT(block.age, taken.age) << "an equal one was released later";
    }
  }
}

void IdleModel::TakeReused(const DeviceStats& before, const DeviceStats& after) {
  const uint64_t hits = Hits(after) - Hits(before);
  const bool at_once = asked_ && hits == asked_->wants.size() && reused_.size() == hits;
  uint64_t seen = 0;
  for (size_t i = 0; i < reused_.size(); ++i) {
    for (std::vector<Block>* const blocks : {&idle_, &released_}) {
      const auto found = std::find_if(blocks->begin(), blocks->end(), [&](const Block& block) {
        return block.memory == reused_[i];
      });
      if (found == blocks->end()) continue;
      const Block taken = *found;
      blocks->erase(found);
      ++seen;
      if (at_once) CheckBest(asked_->wants[i], taken);
      break;
    }
  }
  // An order that is tried again counts no more, whatever serves it then.
  if (hits > seen && complete_) TakeHidden(before, after);
}

// A hit that has to be cleared, or whose order waits, is not seen before the order is
// through. A single request surely got the best.
void IdleModel::TakeHidden(const DeviceStats& before, const DeviceStats& after) {
  const auto forget = [this] { complete_ = false; };
  if (!asked_ || asked_->wants.size() != 1) return forget();
  auto best = idle_.end();
  for (auto it = idle_.begin(); it != idle_.end(); ++it) {
    if (after.pools[it->pool].hits == before.pools[it->pool].hits ||
        !Fits(*it, *asked_, asked_->wants[0])) {
      continue;
    }
    if (!it->aged) return forget();
    // Later ones are newer.
    if (best == idle_.end() || it->made_for <= best->made_for) best = it;
  }
  EXPECT_TRUE(best != idle_.end()) << "a hit, but of nothing that fits";
  if (best == idle_.end()) return forget();
  idle_.erase(best);
}

void IdleModel::AddReleased() {
  for (const Block& block : released_) {
    if (options_.pools[block.pool].limits.max_free_allocation_count > 0) idle_.push_back(block);
  }
}

IdleModel::Key IdleModel::KeyOf(const Block& block, const Context& context) const {
  return {context.tenants.contains(block.tenant), block.age};
}

// What has left the pool, by how many and for which reasons: for all of them but pressure
// the oldest goes first.
void IdleModel::SettlePool(size_t pool, const PoolStats& before, const PoolStats& after,
                           const Context& context) {
  if (after.limits.max_free_allocation_count == 0) return;
  std::vector<Block> blocks;
  bool aged = true, orphans = false;
  for (const Block& block : idle_) {
    if (block.pool != pool) continue;
    blocks.push_back(block);
    aged &= block.aged;
    orphans |= !context.tenants.contains(block.tenant);
  }
  const uint64_t by_age =
      More(before, after, NotKeptReason::kCount) + More(before, after, NotKeptReason::kCapacity) +
      More(before, after, NotKeptReason::kTtl) + More(before, after, NotKeptReason::kTrim);
  const uint64_t by_pressure = More(before, after, NotKeptReason::kPressure);
  const uint64_t gone = by_age + by_pressure;
  const bool mixed = by_pressure > 0 && (context.tenants_changed || (by_age > 0 && orphans));
  // Some were taken by an order that is tried again, or came back from one that was given
  // up. Or it is not known which of them are gone.
  if (blocks.size() != gone + after.idle_blocks || (gone > 0 && (!aged || mixed))) {
    complete_ = false;
  }
  if (!complete_ || gone == 0) return;
  std::sort(blocks.begin(), blocks.end(), [&](const Block& a, const Block& b) {
    return by_pressure > 0 ? KeyOf(a, context) < KeyOf(b, context) : a.age < b.age;
  });
  Bytes left;
  for (size_t i = gone; i < blocks.size(); ++i) left += blocks[i].bytes;
  EXPECT_EQ(left, after.idle) << after.name << " evicted another block than the oldest";
  evictions_checked_ += gone;
  for (size_t i = 0; i < gone; ++i) {
    evicted_.push_back({blocks[i], by_age == 0});
    idle_.erase(std::find_if(idle_.begin(), idle_.end(),
                             [&](const Block& block) { return block.memory == blocks[i].memory; }));
  }
}

// Across pools: on a heap that bytes were needed of, what went before what stayed; and
// where none were, an allocation was needed, of whatever heap. Segments go last.
void IdleModel::CheckOrder(const DeviceStats& before, const DeviceStats& after,
                           const Context& context) {
  for (const Evicted& evicted : evicted_) {
    if (!evicted.pressure || !evicted.block.aged) continue;
    const bool anywhere =
        !context.driver_asked && !context.ordered_heaps.contains(HeapOf(evicted.block));
    for (const Block& block : idle_) {
      if (!block.aged || (!anywhere && HeapOf(block) != HeapOf(evicted.block))) continue;
      EXPECT_LT(KeyOf(evicted.block, context), KeyOf(block, context))
          << "evicted before one that was to go first";
    }
  }
  const bool segments = More(before.pools.back(), after.pools.back(), NotKeptReason::kPressure) > 0;
  if (segments && device_.heaps.size() == 1) {
    EXPECT_TRUE(idle_.empty()) << "a segment was evicted before idle blocks";
  }
}

}  // namespace heapbroker
