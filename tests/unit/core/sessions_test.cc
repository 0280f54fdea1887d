// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/core/sessions.h"

#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/support/status_matchers.h"

namespace heapbroker {
namespace {

SessionToken Token(uint8_t fill) {
  SessionToken token;
  token.fill(fill);
  return token;
}

SessionIdentity Named(const char* name, bool observer = false) {
  SessionIdentity identity;
  identity.uid = 1001;
  identity.pid = 42;
  identity.name = name;
  identity.observer = observer;
  return identity;
}

TEST(SessionsTest, FindsASessionByItsTokenUntilItEnds) {
  FakeClock clock;
  Sessions sessions(clock);
  const Session opened = sessions.Open(Named("engine"), Token(7));
  ASSERT_OK_AND_ASSIGN(const Session found, sessions.Find(Token(7)));
  EXPECT_EQ(found.id, opened.id);
  EXPECT_EQ(found.tenant(), TenantId(1001));
  EXPECT_EQ(found.start_time, clock.Now());
  sessions.End(opened.id);
  sessions.End(opened.id);
  EXPECT_THAT(sessions.Find(Token(7)),
              StatusIs(absl::StatusCode::kUnauthenticated, "heapbroker-session-bin"));
}

TEST(SessionsTest, NeverUsesAnIdTwice) {
  FakeClock clock;
  Sessions sessions(clock);
  const SessionId first = sessions.Open(Named("a"), Token(1)).id;
  sessions.End(first);
  EXPECT_NE(sessions.Open(Named("a"), Token(1)).id, first);
}

TEST(SessionsTest, ListsInPagesAndLeavesObserversOutUnlessAsked) {
  FakeClock clock;
  Sessions sessions(clock);
  sessions.Open(Named("a"), Token(1));
  sessions.Open(Named("watcher", true), Token(2));
  const SessionId last = sessions.Open(Named("b"), Token(3)).id;
  EXPECT_EQ(sessions.List(SessionId(), 10, false).size(), 2u);
  EXPECT_EQ(sessions.List(SessionId(), 10, true).size(), 3u);
  EXPECT_EQ(sessions.List(SessionId(), 1, false).size(), 1u);
  ASSERT_EQ(sessions.List(SessionId(1), 10, false).size(), 1u);
  EXPECT_EQ(sessions.List(SessionId(1), 10, false)[0].id, last);
  EXPECT_EQ(sessions.Count().clients, 2u);
  EXPECT_EQ(sessions.Count().observers, 1u);
}

}  // namespace
}  // namespace heapbroker
