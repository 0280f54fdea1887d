// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A client of a daemon inside the test.
#ifndef TESTS_UNIT_CLIENT_CLIENT_FIXTURE_H_
#define TESTS_UNIT_CLIENT_CLIENT_FIXTURE_H_

#include <fcntl.h>
#include <sys/resource.h>

#include <memory>

#include "common/posix/unique_fd.h"
#include "gtest/gtest.h"
#include "heapbroker/client.h"
#include "tests/support/status_matchers.h"
#include "tests/unit/client/fake_daemon.h"

namespace heapbroker {

class ClientTest : public testing::Test {
 protected:
  ClientOptions Options() const { return {.name = "test", .runtime_dir = daemon_.runtime_dir()}; }
  std::shared_ptr<Client> Connect() {
    absl::StatusOr<std::shared_ptr<Client>> client = Client::Connect(Options());
    EXPECT_THAT(client, IsOk());
    return *client;
  }

  MemfdBlockSource source_;
  FakeDaemon daemon_{source_};
};

// The lowest number that a new descriptor would get becomes the limit.
class DescriptorLimit {
 public:
  DescriptorLimit() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const UniqueFd lowest(open("/dev/null", O_RDONLY | O_CLOEXEC));
    rlimit reached = before_;
    reached.rlim_cur = static_cast<rlim_t>(lowest.get());
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &reached), 0);
  }
  ~DescriptorLimit() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }

 private:
  rlimit before_{};
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CLIENT_CLIENT_FIXTURE_H_
