// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/trace/name_hash.h"

#include <bit>
#include <cstddef>
#include <random>

namespace heapbroker {
namespace {

using State = std::array<uint64_t, 4>;

void Round(State& v) {
  v[0] += v[1];
  v[1] = std::rotl(v[1], 13) ^ v[0];
  v[0] = std::rotl(v[0], 32);
  v[2] += v[3];
  v[3] = std::rotl(v[3], 16) ^ v[2];
  v[0] += v[3];
  v[3] = std::rotl(v[3], 21) ^ v[0];
  v[2] += v[1];
  v[1] = std::rotl(v[1], 17) ^ v[2];
  v[2] = std::rotl(v[2], 32);
}

void Absorb(State& v, uint64_t word) {
  v[3] ^= word;
  Round(v);
  Round(v);
  v[0] ^= word;
}

}  // namespace

NameHashKey RandomNameHashKey() {
  std::random_device random;
  const auto word = [&random] { return uint64_t{random()} << 32 | random(); };
  return {word(), word()};
}

uint64_t HashName(const NameHashKey& key, absl::string_view name) {
  State v = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261,
             key[1] ^ 0x7465646279746573};
  uint64_t word = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    word |= uint64_t{static_cast<unsigned char>(name[i])} << (i % 8 * 8);
    if (i % 8 != 7) continue;
    Absorb(v, word);
    word = 0;
  }
  Absorb(v, word | uint64_t{name.size()} << 56);
  v[2] ^= 0xff;
  for (int i = 0; i < 4; ++i) Round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

}  // namespace heapbroker
