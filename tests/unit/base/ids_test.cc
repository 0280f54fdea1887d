// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "common/base/ids.h"

#include <type_traits>

#include "absl/hash/hash_testing.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

TEST(IdTest, NamesNothingUntilItIsGivenAValue) {
  EXPECT_EQ(BlockId().value(), 0u);
  EXPECT_LT(BlockId(), BlockId(1));
}

TEST(IdTest, CannotBeTakenForAnIdOfAnotherThing) {
  EXPECT_FALSE((std::is_convertible_v<BlockId, SessionId>));
  EXPECT_FALSE((std::is_constructible_v<SessionId, BlockId>));
  EXPECT_FALSE((std::is_convertible_v<uint64_t, SessionId>));
}

TEST(IdTest, HashesAsItCompares) {
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(
      {SessionId(), SessionId(1), SessionId(2), SessionId(~uint64_t{0})}));
}

TEST(TenantIdTest, TellsRootFromOtherUsers) {
  EXPECT_EQ(TenantId(0), TenantId(0));
  EXPECT_NE(TenantId(0), TenantId(1000));
  EXPECT_EQ(TenantId(1000).uid(), 1000u);
}

}  // namespace
}  // namespace heapbroker
