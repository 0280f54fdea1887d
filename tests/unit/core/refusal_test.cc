// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/refusal.h"

#include "absl/strings/cord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr LimitKind kAllKinds[] = {LimitKind::kHeapBudget,         LimitKind::kMaxAllocationSize,
                                   LimitKind::kMaxAllocationCount, LimitKind::kDescriptors,
                                   LimitKind::kMemoryMaps,         LimitKind::kDriver,
                                   LimitKind::kWaitingCalls,       LimitKind::kWaitingBlocks};

Refusal Bytewise() {
  Refusal refusal;
  refusal.heap = 2;
  refusal.value = MiB(100).count();
  refusal.in_use = MiB(60).count();
  refusal.requested = MiB(50).count();
  refusal.largest_now = MiB(16).count();
  refusal.free = MiB(40).count();
  return refusal;
}

Refusal Countwise(LimitKind kind) {
  Refusal refusal;
  refusal.limit = kind;
  refusal.value = refusal.in_use = 64;
  refusal.requested = 2;
  return refusal;
}

TEST(RefusalTest, ComesBackOutOfItsStatusAsItWent) {
  for (RefusalKind kind : {RefusalKind::kNeverFits, RefusalKind::kLimitReached}) {
    for (LimitKind limit : kAllKinds) {
      for (std::optional<uint32_t> heap :
           {std::optional<uint32_t>(), std::optional<uint32_t>(0), std::optional<uint32_t>(15)}) {
        Refusal refusal = Bytewise();
        refusal.kind = kind;
        refusal.limit = limit;
        refusal.heap = heap;
        refusal.value = UINT64_MAX;
        EXPECT_EQ(RefusalOf(RefusalStatus(refusal)), refusal);
        EXPECT_EQ(RefusalOf(RefusalStatus(refusal, "a, cause")), refusal);
      }
    }
  }
}

TEST(RefusalTest, IsNotFoundInAnyOtherStatus) {
  EXPECT_EQ(RefusalOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(RefusalOf(absl::ResourceExhaustedError("out of descriptors")), std::nullopt);
  for (const char* payload : {"", "1", "1,2,3", "1,2,3,4,5,6,7,8,9", "a,b,c,d,e,f,g,h"}) {
    absl::Status status = absl::ResourceExhaustedError("");
    status.SetPayload("heapbroker/refusal", absl::Cord(payload));
    EXPECT_EQ(RefusalOf(status), std::nullopt) << payload;
  }
}

TEST(RefusalTest, SaysWhatWasAskedForWhatIsThereAndWhatToDo) {
  EXPECT_EQ(Sentence(Bytewise()),
            "heap 2: 50.0 MiB asked for; of the daemon's budget of 100.0 MiB, 60.0 MiB are held "
            "and 40.0 MiB free or idle, of which one request could get 16.0 MiB; ask for less, or "
            "try when others have released some");
}

TEST(RefusalTest, SaysThatWaitingIsOfNoUseWhereItNeverFits) {
  Refusal refusal = Bytewise();
  refusal.kind = RefusalKind::kNeverFits;
  EXPECT_EQ(Sentence(refusal),
            "heap 2: 50.0 MiB can never fit in the daemon's budget of 100.0 MiB; ask for less, or "
            "have the limit raised");
}

TEST(RefusalTest, CountsAreNotCalledBytes) {
  for (LimitKind kind :
       {LimitKind::kMaxAllocationCount, LimitKind::kDescriptors, LimitKind::kMemoryMaps,
        LimitKind::kWaitingCalls, LimitKind::kWaitingBlocks}) {
    const std::string text = Sentence(Countwise(kind));
    EXPECT_THAT(text, HasSubstr("64 of 64 "));
    EXPECT_THAT(text, HasSubstr("asked for were 2 more; "));
    EXPECT_THAT(text, Not(HasSubstr("iB")));
  }
}

TEST(RefusalTest, NamesTheLimitThatAnAdministratorCouldRaise) {
  EXPECT_THAT(Sentence(Countwise(LimitKind::kDescriptors)), HasSubstr("RLIMIT_NOFILE"));
  EXPECT_THAT(Sentence(Countwise(LimitKind::kMemoryMaps)), HasSubstr("vm.max_map_count"));
}

TEST(RefusalTest, CarriesWhatElseIsKnownOfTheCause) {
  Refusal refusal = Bytewise();
  refusal.limit = LimitKind::kDriver;
  const absl::Status status = RefusalStatus(refusal, "VK_ERROR_OUT_OF_DEVICE_MEMORY");
  EXPECT_THAT(status, StatusIs(StatusCode::kResourceExhausted, "(VK_ERROR_OUT_OF_DEVICE_MEMORY)"));
  EXPECT_THAT(status, StatusIs(StatusCode::kResourceExhausted, "heap 2: the driver refused 50.0"));
}

}  // namespace
}  // namespace heapbroker
