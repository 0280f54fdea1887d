// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "heapbroker/checksum.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace heapbroker {
namespace {

Checksum FromXxh(XXH128_hash_t hash) { return {.high = hash.high64, .low = hash.low64}; }

}  // namespace

struct Checksummer::State {
  XXH3_state_t xxh;
};

Checksummer::Checksummer() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }

Checksummer::~Checksummer() = default;

void Checksummer::Add(const void* data, Bytes size) {
  if (size == Bytes(0)) return;
  XXH3_128bits_update(&state_->xxh, data, size.count());
}

Checksum Checksummer::Finish() const { return FromXxh(XXH3_128bits_digest(&state_->xxh)); }

Checksum ChecksumOf(const void* data, Bytes size) {
  return FromXxh(XXH3_128bits(size == Bytes(0) ? "" : data, size.count()));
}

}  // namespace heapbroker
