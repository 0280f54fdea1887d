// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Descriptors of many blocks in few messages.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "heapbroker/memory_block.h"
#include "tests/support/process_facts.h"
#include "tests/unit/client/client_fixture.h"

namespace heapbroker {
namespace {

class FetchAllTest : public ClientTest {
 protected:
  static std::vector<const MemoryBlock*> BlocksOf(const std::vector<Lease>& leases) {
    std::vector<const MemoryBlock*> blocks;
    for (const Lease& lease : leases) blocks.push_back(lease.block().get());
    return blocks;
  }
};

TEST_F(FetchAllTest, ManyDescriptorsComeInFewMessages) {
  const std::shared_ptr<Client> client = Connect();
  std::vector<AllocationRequest> requests;
  for (uint64_t i = 1; i <= 8; ++i) requests.push_back({.size = Bytes(i)});
  ASSERT_OK_AND_ASSIGN(const std::vector<Lease> leases, client->AllocateAll(requests));
  // Not asked for again.
  ASSERT_THAT(leases[1].fd(), IsOk());
  const size_t before = daemon_.session_socket().requests().size();
  ASSERT_THAT(MemoryBlock::FetchAll(BlocksOf(leases)), IsOk());
  // Seven, at most three at once.
  EXPECT_EQ(daemon_.session_socket().requests().size(), before + 3);
  for (const Lease& lease : leases) {
    ASSERT_OK_AND_ASSIGN(const int fd, lease.fd());
    EXPECT_EQ(lseek(fd, 0, SEEK_END), static_cast<off_t>(lease.facts().size.count()));
    EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  }
  EXPECT_THAT(MemoryBlock::FetchAll(BlocksOf(leases)), IsOk());
  EXPECT_THAT(MemoryBlock::FetchAll({}), IsOk());
  EXPECT_EQ(daemon_.session_socket().requests().size(), before + 3);
}

TEST_F(FetchAllTest, ThreadsThatFetchTheSameBlocksAtOnceGetAll) {
  const std::shared_ptr<Client> client = Connect();
  for (int round = 0; round < 20; ++round) {
    const std::vector<AllocationRequest> requests(8, {.size = Bytes(10)});
    ASSERT_OK_AND_ASSIGN(const std::vector<Lease> leases, client->AllocateAll(requests));
    std::vector<const MemoryBlock*> blocks = BlocksOf(leases);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      std::rotate(blocks.begin(), blocks.begin() + 2, blocks.end());
      threads.emplace_back([blocks] { EXPECT_THAT(MemoryBlock::FetchAll(blocks), IsOk()); });
      threads.emplace_back([&leases, i] { EXPECT_THAT(leases[i].fd(), IsOk()); });
    }
    for (std::thread& thread : threads) thread.join();
    std::set<int> different;
    for (const Lease& lease : leases) different.insert(lease.fd().value());
    EXPECT_EQ(different.size(), leases.size());
  }
}

TEST_F(FetchAllTest, AtTheDescriptorLimitWhatCameOfManyIsKept) {
  const std::shared_ptr<Client> client = Connect();
  const std::vector<AllocationRequest> requests(3, {.size = Bytes(1)});
  ASSERT_OK_AND_ASSIGN(const std::vector<Lease> leases, client->AllocateAll(requests));
  // Nothing of the fake's may come or go meanwhile.
  UniqueFd room(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const UniqueFd prepared(open("/dev/null", O_RDONLY | O_CLOEXEC));
  daemon_.session_socket().AnswerWith([&](const v1::SessionRequest& request) {
    SessionAnswer answer;
    *answer.reply.mutable_fetched()->mutable_block_ids() = request.fetch().block_ids();
    answer.borrowed_fds.assign(request.fetch().block_ids_size(), prepared.get());
    return answer;
  });
  {
    const DescriptorLimit limit;
    room = UniqueFd();
    EXPECT_THAT(MemoryBlock::FetchAll(BlocksOf(leases)),
                StatusIs(absl::StatusCode::kResourceExhausted, "RLIMIT_NOFILE"));
    EXPECT_THAT(leases[0].fd(), IsOk());
    EXPECT_THAT(leases[1].fd(), StatusIs(absl::StatusCode::kResourceExhausted, "RLIMIT_NOFILE"));
  }
  EXPECT_THAT(MemoryBlock::FetchAll(BlocksOf(leases)), IsOk());
  EXPECT_THAT(leases[2].fd(), IsOk());
}

TEST_F(FetchAllTest, ADaemonThatAnswersManyWithOthersIsAnError) {
  const std::shared_ptr<Client> client = Connect();
  const std::vector<AllocationRequest> requests(3, {.size = Bytes(1)});
  ASSERT_OK_AND_ASSIGN(const std::vector<Lease> leases, client->AllocateAll(requests));
  const UniqueFd prepared(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto answer_with = [&](const std::vector<uint64_t>& ids, size_t descriptors) {
    daemon_.session_socket().AnswerWith([&prepared, ids, descriptors](const v1::SessionRequest&) {
      SessionAnswer answer;
      answer.reply.mutable_fetched()->mutable_block_ids()->Add(ids.begin(), ids.end());
      answer.borrowed_fds.assign(descriptors, prepared.get());
      return answer;
    });
  };
  const uint64_t a = leases[0].facts().block_id;
  const uint64_t b = leases[1].facts().block_id;
  const uint64_t c = leases[2].facts().block_id;
  const size_t before = OpenDescriptorCount(getpid()).value();
  for (const auto& [ids, descriptors] : std::vector<std::pair<std::vector<uint64_t>, size_t>>{
           {{}, 0}, {{b, a}, 2}, {{a, b, c, a}, 3}, {{a, b}, 1}, {{a}, 2}, {{a, b, c}, 0}}) {
    answer_with(ids, descriptors);
    EXPECT_THAT(MemoryBlock::FetchAll(BlocksOf(leases)),
                StatusIs(absl::StatusCode::kInternal, "the daemon"))
        << ids.size() << " ids, " << descriptors << " descriptors";
    EXPECT_EQ(OpenDescriptorCount(getpid()).value(), before);
  }
  // Fewer than asked for is no error.
  answer_with({a}, 1);
  EXPECT_THAT(MemoryBlock::FetchAll({leases[0].block().get()}), IsOk());
}

}  // namespace
}  // namespace heapbroker
