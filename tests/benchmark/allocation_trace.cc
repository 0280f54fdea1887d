// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/allocation_trace.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace heapbroker {
namespace {

using Random = std::mt19937_64;

class TraceWriter {
 public:
  TraceWriter(std::string name, uint32_t usual_alignment) {
    trace_.name = std::move(name);
    trace_.usual_alignment = usual_alignment;
  }

  uint32_t Allocate(uint64_t size, uint32_t alignment) {
    uint32_t id = trace_.ids;
    if (spare_.empty()) {
      ++trace_.ids;
      sizes_.push_back(0);
    } else {
      id = spare_.back();
      spare_.pop_back();
    }
    sizes_[id] = size;
    allocated_ += size;
    trace_.peak = std::max(trace_.peak, Bytes(allocated_));
    trace_.steps.push_back({.id = id, .alignment = alignment, .size = size});
    return id;
  }
  uint32_t Allocate(uint64_t size) { return Allocate(size, trace_.usual_alignment); }
  void Free(uint32_t id) {
    allocated_ -= std::exchange(sizes_[id], 0);
    spare_.push_back(id);
    trace_.steps.push_back({.id = id});
  }
  void Free(std::vector<uint32_t>& ids) {
    for (const uint32_t id : ids) Free(id);
    ids.clear();
  }

  size_t steps() const { return trace_.steps.size(); }

  AllocationTrace Finish() {
    for (uint32_t id = 0; id < trace_.ids; ++id) {
      if (sizes_[id] != 0) Free(id);
    }
    return std::move(trace_);
  }

 private:
  AllocationTrace trace_;
  std::vector<uint32_t> spare_;
  std::vector<uint64_t> sizes_;
  uint64_t allocated_ = 0;
};

uint64_t Number(Random& random, uint64_t from, uint64_t to) {
  return std::uniform_int_distribution<uint64_t>(from, to)(random);
}

template <typename AlignmentOf>
AllocationTrace Replace(TraceWriter writer, uint32_t live, uint32_t steps, Random& random,
                        AlignmentOf alignment_of) {
  // Half are smaller than 8 KiB, one in a thousand is larger than 600 KiB.
  std::lognormal_distribution<double> sizes(std::log(8192), 1.4);
  const auto allocate = [&] {
    const auto size = static_cast<uint64_t>(std::clamp(sizes(random), 16.0, 16777216.0));
    return writer.Allocate(size, alignment_of(size));
  };
  std::vector<uint32_t> ids;
  while (ids.size() < live) ids.push_back(allocate());
  while (writer.steps() < steps) {
    uint32_t& id = ids[Number(random, 0, ids.size() - 1)];
    writer.Free(id);
    id = allocate();
  }
  std::shuffle(ids.begin(), ids.end(), random);
  writer.Free(ids);
  return writer.Finish();
}

// A small language model with grouped attention, in half precision.
constexpr uint64_t kLayers = 22;
constexpr uint64_t kHidden = 2048;
constexpr uint64_t kHeads = 32;
constexpr uint64_t kKeyWidth = 256;
constexpr uint64_t kInner = 5632;
constexpr uint64_t kTokensOfCache = 16;

struct Conversation {
  uint64_t tokens = 0;
  uint64_t end = 0;
  std::vector<uint32_t> cache;
};

void DecodeLayer(TraceWriter& writer, Conversation& conversation, uint64_t count) {
  if (conversation.tokens % kTokensOfCache < count) {
    const uint64_t chunks = (count + kTokensOfCache - 1) / kTokensOfCache;
    for (uint64_t i = 0; i < 2 * chunks; ++i) {
      conversation.cache.push_back(writer.Allocate(kTokensOfCache * kKeyWidth * 2));
    }
  }
  const uint64_t row = count * kHidden * 2;
  const uint32_t normed = writer.Allocate(row);
  const uint32_t query = writer.Allocate(row);
  const uint32_t key = writer.Allocate(count * kKeyWidth * 2);
  const uint32_t value = writer.Allocate(count * kKeyWidth * 2);
  writer.Free(normed);
  const uint32_t scores = writer.Allocate(kHeads * count * (conversation.tokens + count) * 2);
  writer.Free(query);
  writer.Free(key);
  const uint32_t attended = writer.Allocate(row);
  writer.Free(scores);
  writer.Free(value);
  const uint32_t projected = writer.Allocate(row);
  writer.Free(attended);
  const uint32_t gate = writer.Allocate(count * kInner * 2);
  const uint32_t up = writer.Allocate(count * kInner * 2);
  const uint32_t product = writer.Allocate(count * kInner * 2);
  writer.Free(gate);
  writer.Free(up);
  const uint32_t down = writer.Allocate(row);
  writer.Free(product);
  writer.Free(projected);
  writer.Free(down);
}

// Outputs of a network's layers, in bytes, for an image of `side` by `side`.
std::vector<uint64_t> LayerOutputs(uint64_t side) {
  std::vector<uint64_t> outputs;
  uint64_t channels = 64;
  for (uint64_t now = side / 2; now >= 7; now /= 2, channels *= 2) {
    for (int layer = 0; layer < 6; ++layer) {
      // Bottlenecks: narrow, narrow, wide.
      outputs.push_back(now * now * channels * (layer % 3 == 2 ? 4 : 1) * 2);
    }
  }
  return outputs;
}

void RunGraph(TraceWriter& writer, uint64_t tokens, uint64_t context) {
  uint32_t residual = writer.Allocate(tokens * 768 * 4);
  for (int layer = 0; layer < 12; ++layer) {
    const uint32_t norm = writer.Allocate(tokens * 768 * 4);
    const uint32_t qkv = writer.Allocate(tokens * 3 * 768 * 4);
    writer.Free(norm);
    const uint32_t scores = writer.Allocate(12 * tokens * context * 4);
    const uint32_t soft = writer.Allocate(12 * tokens * context * 4);
    writer.Free(scores);
    const uint32_t mixed = writer.Allocate(tokens * 768 * 4);
    writer.Free(soft);
    writer.Free(qkv);
    const uint32_t sum = writer.Allocate(tokens * 768 * 4);
    writer.Free(mixed);
    writer.Free(residual);
    const uint32_t inner = writer.Allocate(tokens * 3072 * 4);
    const uint32_t outer = writer.Allocate(tokens * 768 * 4);
    writer.Free(inner);
    residual = writer.Allocate(tokens * 768 * 4);
    writer.Free(outer);
    writer.Free(sum);
  }
  const uint32_t logits = writer.Allocate(32000 * 4);
  writer.Free(residual);
  writer.Free(logits);
}

}  // namespace

AllocationTrace LogNormalTrace(uint32_t live, uint32_t steps, uint32_t seed) {
  Random random(seed);
  return Replace(TraceWriter("log-normal, " + std::to_string(live) + " live", 256), live, steps,
                 random, [](uint64_t) { return 256u; });
}

AllocationTrace MixedAlignmentTrace(uint32_t live, uint32_t steps, uint32_t seed) {
  Random random(seed);
  return Replace(TraceWriter("the same, mixed alignments", 64), live, steps, random,
                 [&random](uint64_t) {
                   constexpr uint32_t kAlignments[] = {1, 4, 16, 64, 64, 64, 256, 4096};
                   return kAlignments[Number(random, 0, std::size(kAlignments) - 1)];
                 });
}

AllocationTrace DecodeTrace(uint32_t steps, uint32_t seed) {
  Random random(seed);
  TraceWriter writer("decode loop", 256);
  std::vector<Conversation> conversations(8);
  while (writer.steps() < steps) {
    for (Conversation& conversation : conversations) {
      uint64_t count = 1;
      if (conversation.tokens == conversation.end) {
        writer.Free(conversation.cache);
        count = Number(random, 8, 200);  // The prompt.
        conversation = {.end = count + Number(random, 20, 600)};
      }
      for (uint64_t layer = 0; layer < kLayers; ++layer) DecodeLayer(writer, conversation, count);
      conversation.tokens += count;
    }
  }
  return writer.Finish();
}

AllocationTrace NcnnTrace(uint32_t steps, uint32_t seed) {
  Random random(seed);
  TraceWriter writer("like ncnn", 64);
  // Weights stay.
  for (uint64_t layer = 0; layer < 26; ++layer) {
    writer.Allocate(Number(random, 4 << 10, 2 << 20));
  }
  while (writer.steps() < steps) {
    constexpr uint64_t kSides[] = {224, 224, 224, 320, 416};
    const uint64_t side = kSides[Number(random, 0, std::size(kSides) - 1)];
    uint32_t input = writer.Allocate(side * side * 3 * 4);
    uint32_t shortcut = writer.Allocate(side * side * 2);
    int layer = 0;
    for (const uint64_t size : LayerOutputs(side)) {
      const uint32_t packed = writer.Allocate(size);
      const uint32_t output = writer.Allocate(size);
      writer.Free(packed);
      // Every third output is added to an earlier one, which was kept for it.
      if (++layer % 3 == 0) {
        writer.Free(shortcut);
        shortcut = input;
      } else {
        writer.Free(input);
      }
      input = output;
    }
    writer.Free(input);
    writer.Free(shortcut);
  }
  return writer.Finish();
}

AllocationTrace GgmlTrace(uint32_t steps, uint32_t seed) {
  Random random(seed);
  TraceWriter writer("like ggml", 32);
  writer.Allocate(uint64_t{82} << 20);
  for (int i = 0; i < 10; ++i) writer.Allocate(Number(random, 64 << 10, 1 << 20));
  while (writer.steps() < steps) {
    const uint64_t prompt = Number(random, 16, 512);
    RunGraph(writer, prompt, prompt);
    const uint64_t answer = Number(random, 10, 100);
    for (uint64_t token = 1; token <= answer; ++token) {
      // The cache is looked at in steps of 32 tokens.
      RunGraph(writer, 1, (prompt + token + 31) / 32 * 32);
    }
  }
  return writer.Finish();
}

}  // namespace heapbroker
