// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/pool_spec.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

using Specs = std::vector<PoolSpec>;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Specs Parsed(absl::string_view text) {
  const absl::StatusOr<Specs> specs = ParsePoolSpecs(text);
  EXPECT_THAT(specs, IsOk()) << text;
  return specs.value_or(Specs(1));
}

PoolLimits LimitsOf(absl::string_view text) { return Parsed(text).front().limits; }

void ExpectLimits(const PoolLimits& limits, Bytes size, Bytes capacity, uint64_t count) {
  EXPECT_EQ(limits.max_allocation_size, size);
  EXPECT_EQ(limits.max_allocation_capacity, capacity);
  EXPECT_EQ(limits.max_free_allocation_count, count);
}

void ExpectDefaults(const PoolLimits& limits) {
  ExpectLimits(limits, Bytes::Max(), Bytes::Max(), 64);
}

TEST(PoolSpecTest, ReadsEveryPartOfAPair) {
  const Specs specs = Parsed("device_local|host_visible;transfer=100mib;2gb;10");
  ASSERT_EQ(specs.size(), 1u);
  EXPECT_EQ(specs[0].text, "device_local|host_visible;transfer");
  EXPECT_FALSE(specs[0].every_type);
  EXPECT_TRUE(specs[0].wish.device_local && specs[0].wish.host_visible);
  ExpectLimits(specs[0].limits, MiB(100), Bytes(2000000000), 10);
}

TEST(PoolSpecTest, AKeyAloneMeansAllDefaults) {
  const Specs specs = Parsed("host_cached");
  ASSERT_EQ(specs.size(), 1u);
  EXPECT_TRUE(specs[0].wish.host_cached);
  EXPECT_FALSE(specs[0].every_type);
  ExpectDefaults(specs[0].limits);
}

TEST(PoolSpecTest, MissingEmptyAndStarMeanTheDefault) {
  for (const char* text : {"device_local=", "device_local=*", "device_local=;", "device_local=;;",
                           "device_local=*;*;*", "device_local=;*;", "device_local= ; ; "}) {
    ExpectDefaults(LimitsOf(text));
  }
  ExpectLimits(LimitsOf("device_local=1kib"), KiB(1), Bytes::Max(), 64);
  ExpectLimits(LimitsOf("device_local=;1kib"), Bytes::Max(), KiB(1), 64);
  ExpectLimits(LimitsOf("device_local=*;1kib;*"), Bytes::Max(), KiB(1), 64);
  ExpectLimits(LimitsOf("device_local=;;5"), Bytes::Max(), Bytes::Max(), 5);
}

TEST(PoolSpecTest, AnEmptyTextMeansEveryMemoryTypeWithTheDefaults) {
  for (const char* text : {"", " ", "*", "*=", "*=*;*;*", "*;*", "*;transfer"}) {
    const Specs specs = Parsed(text);
    ASSERT_EQ(specs.size(), 1u) << text;
    EXPECT_TRUE(specs[0].every_type) << text;
    EXPECT_EQ(specs[0].wish, MemoryTypeWish()) << text;
    ExpectDefaults(specs[0].limits);
  }
  EXPECT_EQ(Parsed("")[0].text, "*");
  EXPECT_EQ(Parsed("*=1gib")[0].text, "*");
}

TEST(PoolSpecTest, UnboundedMeansEveryMemoryTypeWithoutALimit) {
  for (const char* text : {"unbounded", "Unbounded", " unbounded ", "unbounded,"}) {
    const Specs specs = Parsed(text);
    ASSERT_EQ(specs.size(), 1u) << text;
    EXPECT_TRUE(specs[0].every_type);
    EXPECT_EQ(specs[0].text, "*");
    ExpectLimits(specs[0].limits, Bytes::Max(), Bytes::Max(), UINT64_MAX);
  }
}

TEST(PoolSpecTest, UnboundedStandsAlone) {
  for (const char* text : {"unbounded,device_local", "device_local,unbounded", "unbounded=1gib",
                           "unbounded=", "unbounded,unbounded"}) {
    EXPECT_THAT(ParsePoolSpecs(text), StatusIs(kInvalid, "\"unbounded\" stands alone")) << text;
  }
  EXPECT_THAT(ParsePoolSpecs("device_local,unbounded"), StatusIs(kInvalid, "at position 13"));
}

TEST(PoolSpecTest, ATrailingCommaIsAccepted) {
  EXPECT_EQ(Parsed("device_local,").size(), 1u);
  EXPECT_EQ(Parsed("device_local=1gib, ").size(), 1u);
  EXPECT_EQ(Parsed("device_local,host_visible,").size(), 2u);
}

TEST(PoolSpecTest, AnEmptyPairElsewhereIsAnError) {
  EXPECT_THAT(ParsePoolSpecs(","), StatusIs(kInvalid, "\",\" at position 0"));
  EXPECT_THAT(ParsePoolSpecs(",device_local"), StatusIs(kInvalid, "at position 0"));
  EXPECT_THAT(ParsePoolSpecs("device_local,,"),
              StatusIs(kInvalid, "\"device_local,,\" at position 13: a pool was expected"));
  EXPECT_THAT(ParsePoolSpecs("device_local,,host_visible"), StatusIs(kInvalid, "at position 13"));
}

TEST(PoolSpecTest, AnEmptyKeyBeforeAnEqualsSignIsAnError) {
  for (const char* text : {"=", "=1gib", " =1gib;*;1", "device_local,=1gib"}) {
    EXPECT_THAT(ParsePoolSpecs(text), StatusIs(kInvalid, "a heap key was expected")) << text;
  }
}

TEST(PoolSpecTest, TooManyPartsAreAnError) {
  EXPECT_THAT(ParsePoolSpecs("device_local=1gib;2gib;3;4"),
              StatusIs(kInvalid, "\"device_local=1gib;2gib;3;4\" at position 25: three limits"));
  EXPECT_THAT(ParsePoolSpecs("device_local=1;2;3;"), StatusIs(kInvalid, "at position 19"));
  EXPECT_THAT(ParsePoolSpecs("device_local=1gib=2gib"),
              StatusIs(kInvalid, "at position 17: a second \"=\""));
  EXPECT_THAT(ParsePoolSpecs("device_local;transfer;dispatch=1"),
              StatusIs(kInvalid, "at position 22: a heap key is memory_type[;usage]"));
}

TEST(PoolSpecTest, SemicolonsBeforeTheEqualsSignAreTheKeysAndAfterItTheLimits) {
  const Specs specs = Parsed("device_local;mapping=1mib;2mib;3");
  EXPECT_TRUE(specs[0].wish.device_local && specs[0].wish.host_visible);
  ExpectLimits(specs[0].limits, MiB(1), MiB(2), 3);
  // Limits without the "=" read as a usage, which they are not.
  EXPECT_THAT(ParsePoolSpecs("device_local;1gib"),
              StatusIs(kInvalid, "at position 13: \"1gib\" is no usage"));
}

TEST(PoolSpecTest, SpacesAroundPartsMeanNothing) {
  const Specs specs =
      Parsed("  Device_Local | host_visible ; transfer = 1 GiB ; * ; 7 , \n host_cached ");
  ASSERT_EQ(specs.size(), 2u);
  EXPECT_EQ(specs[0].text, "device_local|host_visible;transfer");
  ExpectLimits(specs[0].limits, GiB(1), Bytes::Max(), 7);
  EXPECT_EQ(specs[1].text, "host_cached");
}

TEST(PoolSpecTest, CaseMeansNothing) {
  const Specs specs = Parsed("HOST_CACHED;TRANSFER=1GIB;1KB");
  EXPECT_TRUE(specs[0].wish.host_cached);
  EXPECT_EQ(specs[0].text, "host_cached;transfer");
  ExpectLimits(specs[0].limits, GiB(1), Bytes(1000), 64);
}

TEST(PoolSpecTest, ReadsEveryUnitOfASize) {
  const std::vector<std::pair<std::string, uint64_t>> sizes = {
      {"3", 3},
      {"3b", 3},
      {"3kb", 3000},
      {"3mb", 3000000},
      {"3gb", 3000000000},
      {"3tb", 3000000000000},
      {"3kib", uint64_t{3} << 10},
      {"3mib", uint64_t{3} << 20},
      {"3gib", uint64_t{3} << 30},
      {"3tib", uint64_t{3} << 40},
      {"3 TiB", uint64_t{3} << 40},
      {"0", 0},
      {"010", 10},
      {"18446744073709551615", UINT64_MAX},
      {"18446744073709551615b", UINT64_MAX},
      {"16777215tib", uint64_t{16777215} << 40}};
  for (const auto& [text, bytes] : sizes) {
    EXPECT_EQ(LimitsOf("device_local=" + text).max_allocation_size, Bytes(bytes)) << text;
    EXPECT_EQ(LimitsOf("device_local=*;" + text).max_allocation_capacity, Bytes(bytes)) << text;
  }
}

TEST(PoolSpecTest, ABadSizeQuotesThePairAndThePosition) {
  struct Case {
    std::string size;
    size_t position;  // In the size.
    std::string why;
  };
  const std::vector<Case> cases = {{"1.5gib", 1, "this is no unit"},
                                   {"-1", 0, "a digit was expected"},
                                   {"+1", 0, "a digit was expected"},
                                   {"0x10", 1, "this is no unit"},
                                   {"1gx", 1, "this is no unit"},
                                   {"1gibb", 1, "this is no unit"},
                                   {"1  gib", 2, "this is no unit"},
                                   {"1 2", 2, "this is no unit"},
                                   {"gib", 0, "a digit was expected"},
                                   {"**", 0, "a digit was expected"},
                                   {"1_000", 1, "this is no unit"},
                                   {"18446744073709551616", 0, "over 2^64 - 1"},
                                   {"18446744073709551615kib", 0, "over 2^64 - 1 bytes"},
                                   {"17179869184gib", 0, "over 2^64 - 1 bytes"}};
  for (const Case& bad : cases) {
    const std::string size = "host_visible=" + bad.size + ";*;1";
    EXPECT_THAT(ParsePoolSpecs("device_local," + size),
                StatusIs(kInvalid, "max_allocation_size: \"" + size + "\" at position " +
                                       std::to_string(13 + bad.position) + ": "))
        << bad.size;
    EXPECT_THAT(ParsePoolSpecs(size), StatusIs(kInvalid, bad.why)) << bad.size;
    EXPECT_THAT(ParsePoolSpecs(size), StatusIs(kInvalid, "a size is a whole number")) << bad.size;
    const std::string capacity = "host_visible=1;" + bad.size;
    EXPECT_THAT(ParsePoolSpecs(capacity),
                StatusIs(kInvalid, "max_allocation_capacity: \"" + capacity + "\" at position " +
                                       std::to_string(15 + bad.position) + ": "))
        << bad.size;
  }
}

TEST(PoolSpecTest, ACountGoesFromZeroToTwoToThe32MinusOne) {
  EXPECT_EQ(LimitsOf("device_local=*;*;0").max_free_allocation_count, 0u);
  EXPECT_EQ(LimitsOf("device_local=*;*;010").max_free_allocation_count, 10u);
  EXPECT_EQ(LimitsOf("device_local=*;*;4294967295").max_free_allocation_count, 4294967295u);
  for (const char* count : {"4294967296", "18446744073709551616", "99999999999999999999999999"}) {
    EXPECT_THAT(ParsePoolSpecs(absl::StrCat("device_local=*;*;", count)),
                StatusIs(kInvalid,
                         "at position 17: a count is a whole number from 0 to "
                         "4294967295, or \"*\" for 64"));
  }
}

TEST(PoolSpecTest, ABadCountQuotesThePairAndThePosition) {
  EXPECT_THAT(
      ParsePoolSpecs("device_local=*;*;ten"),
      StatusIs(kInvalid, "max_free_allocation_count: \"device_local=*;*;ten\" at position 17: "));
  EXPECT_THAT(ParsePoolSpecs("device_local=*;*;-1"), StatusIs(kInvalid, "at position 17"));
  EXPECT_THAT(ParsePoolSpecs("device_local=*;*;0x10"), StatusIs(kInvalid, "at position 18"));
  EXPECT_THAT(ParsePoolSpecs("device_local=*;*;1 0"), StatusIs(kInvalid, "at position 18"));
  EXPECT_THAT(ParsePoolSpecs("device_local=*;*;8kb"), StatusIs(kInvalid, "at position 18"));
}

TEST(PoolSpecTest, UnknownNamesListTheKnownOnes) {
  EXPECT_THAT(ParsePoolSpecs("host_cached,device_locl=1gib"),
              StatusIs(kInvalid,
                       "\"device_locl=1gib\" at position 0: \"device_locl\" is no memory type; "
                       "known are device_local, host_local, host_visible, host_coherent, "
                       "host_cached, device_visible, optimal, transient"));
  EXPECT_THAT(ParsePoolSpecs("device_local;transfers"),
              StatusIs(kInvalid, "known are transfer, dispatch, mapping"));
  EXPECT_THAT(ParsePoolSpecs("device_local||host_cached=1"),
              StatusIs(kInvalid, "at position 13: \"\" is no memory type"));
}

TEST(PoolSpecTest, QuotesHostileTextEscaped) {
  const std::string hostile("device_local=1\xff\x1b[2J\n;*", 22);
  const absl::StatusOr<Specs> specs = ParsePoolSpecs(hostile);
  EXPECT_THAT(specs, StatusIs(kInvalid, "\\xff\\x1b[2J"));
  EXPECT_THAT(specs, StatusIs(kInvalid, "at position 14"));
  for (const char c : specs.status().message()) EXPECT_TRUE(c >= 0x20 && c < 0x7F);
  EXPECT_THAT(ParsePoolSpecs(absl::string_view("device_local=1;2;3\0", 19)),
              StatusIs(kInvalid, "at position 18"));
}

TEST(PoolSpecTest, KeepsTheOrderOfPools) {
  const std::string small = "device_local=100mib;*;10";
  const std::string large = "device_local=1gib;*;1";
  Specs specs = Parsed(small + "," + large);
  ASSERT_EQ(specs.size(), 2u);
  ExpectLimits(specs[0].limits, MiB(100), Bytes::Max(), 10);
  ExpectLimits(specs[1].limits, GiB(1), Bytes::Max(), 1);
  specs = Parsed(large + "," + small);
  ASSERT_EQ(specs.size(), 2u);
  ExpectLimits(specs[0].limits, GiB(1), Bytes::Max(), 1);
  ExpectLimits(specs[1].limits, MiB(100), Bytes::Max(), 10);
}

TEST(PoolSpecTest, TakesAsManyPoolsAsAreWritten) {
  std::string text;
  for (int i = 1; i <= 100; ++i) absl::StrAppend(&text, "device_local=", i, "mib,");
  EXPECT_EQ(Parsed(text).size(), 100u);
}

TEST(PoolSpecTest, SeveralValuesFollowEachOther) {
  const std::vector<std::string> values = {"device_local,host_cached", "host_visible"};
  ASSERT_OK_AND_ASSIGN(const Specs specs, ParsePoolValues(values));
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[1].text, "host_cached");
  EXPECT_EQ(specs[2].text, "host_visible");
}

TEST(PoolSpecTest, NoValueMeansEveryMemoryType) {
  ASSERT_OK_AND_ASSIGN(const Specs specs, ParsePoolValues({}));
  ASSERT_EQ(specs.size(), 1u);
  EXPECT_TRUE(specs[0].every_type);
  ExpectDefaults(specs[0].limits);
}

TEST(PoolSpecTest, UnboundedIsTheOnlyValue) {
  const std::vector<std::string> alone = {"unbounded"};
  EXPECT_THAT(ParsePoolValues(alone), IsOk());
  const std::vector<std::string> beside = {"device_local", "unbounded"};
  EXPECT_THAT(ParsePoolValues(beside), StatusIs(kInvalid, "\"unbounded\" stands alone"));
  const std::vector<std::string> bad = {"device_local", "host_visible=1x"};
  EXPECT_THAT(ParsePoolValues(bad), StatusIs(kInvalid, "\"host_visible=1x\" at position 14"));
}

// What IREE's parser makes of each is in daemon/README.md.
TEST(PoolSpecTest, UpperCaseUnitsMeanWhatTheySay) {
  EXPECT_EQ(LimitsOf("device_local=1GiB").max_allocation_size, GiB(1));
  EXPECT_EQ(LimitsOf("device_local=1KB").max_allocation_size, Bytes(1000));
}

TEST(PoolSpecTest, TbAndTibAreUnits) {
  EXPECT_EQ(LimitsOf("device_local=1tb").max_allocation_size, Bytes(1000000000000));
  EXPECT_EQ(LimitsOf("device_local=1tib").max_allocation_size, GiB(1024));
}

TEST(PoolSpecTest, NothingAfterTheDigitsIsIgnored) {
  for (const char* size : {"1.5gib", "1gx", "1qb", "1gib/s"}) {
    EXPECT_THAT(ParsePoolSpecs(absl::StrCat("device_local=", size)),
                StatusIs(kInvalid, "this is no unit"))
        << size;
  }
}

TEST(PoolSpecTest, NegativeNumbersAreErrors) {
  EXPECT_THAT(ParsePoolSpecs("device_local=-1"), StatusIs(kInvalid, "position 13"));
  EXPECT_THAT(ParsePoolSpecs("device_local=*;-1"), StatusIs(kInvalid, "position 15"));
  EXPECT_THAT(ParsePoolSpecs("device_local=*;*;-1"), StatusIs(kInvalid, "position 17"));
}

TEST(PoolSpecTest, NumbersAreDecimal) {
  EXPECT_EQ(LimitsOf("device_local=010").max_allocation_size, Bytes(10));
  EXPECT_THAT(ParsePoolSpecs("device_local=0x10"), StatusIs(kInvalid, "position 14"));
}

TEST(PoolSpecTest, SizesAndCountsThatWouldWrapAreErrors) {
  EXPECT_THAT(ParsePoolSpecs("device_local=17179869184gib"), StatusIs(kInvalid, "over 2^64 - 1"));
  EXPECT_THAT(ParsePoolSpecs("device_local=*;*;4294967296"), StatusIs(kInvalid, "a count is"));
}

}  // namespace
}  // namespace heapbroker
