// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A daemon inside the test: both sockets, as the protocol says, and answers that
// the test chooses.
#ifndef TESTS_UNIT_CLIENT_FAKE_DAEMON_H_
#define TESTS_UNIT_CLIENT_FAKE_DAEMON_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/posix/unique_fd.h"
#include "grpcpp/server.h"
#include "heapbroker/v1/broker.grpc.pb.h"
#include "heapbroker/v1/session.pb.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/client/fake_session_socket.h"

namespace heapbroker {

// Where blocks come from. Thread-safe.
class BlockSource {
 public:
  struct Made {
    v1::Block block;  // Without its id.
    UniqueFd fd;
  };
  virtual ~BlockSource() = default;
  virtual absl::StatusOr<Made> Make(uint64_t size) = 0;
  // What the daemon says that it has.
  virtual v1::Device Device() const = 0;
};

// Plain memory files, on a device that does not exist.
class MemfdBlockSource final : public BlockSource {
 public:
  absl::StatusOr<Made> Make(uint64_t size) override;
  v1::Device Device() const override;
};

// As a daemon says that it has no memory: RefusalOf finds out about it.
absl::Status NoMemoryError(const std::string& message, const v1::MemoryRefusal& refusal = {});

// Grants everything, keeps segments by name, and notes what it was asked.
// Thread-safe.
class FakeDaemon : private v1::MemoryBroker::Service {
 public:
  // All of its devices are the source's.
  explicit FakeDaemon(BlockSource& source, uint32_t device_count = 1);
  ~FakeDaemon() override;

  std::string runtime_dir() const { return dir_.path(); }
  FakeSessionSocket& session_socket() { return *session_; }
  // What the session socket says unless the test has it say something else.
  SessionAnswer Answer(const v1::SessionRequest& request);

  // Closes both sockets and removes them, as a daemon does that stops.
  void Stop();
  // Ends all gRPC connections and calls, and takes new ones. The sessions go on.
  void BreakConnections();
  // Another daemon in its place: knows no session, lease or segment of the old one.
  // Notes of what it was asked begin anew, too.
  void Restart(uint32_t device_count = 1);

  // Each gRPC call is answered with this instead.
  void FailCallsWith(const grpc::Status& status);
  // Calls that were, since it was said last.
  int failed_calls() const;
  // Requests for blocks are refused with this, others are not.
  void RefuseAllocationsWith(const absl::Status& refusal);
  // The same, request by request: whatever is not OK.
  void JudgeAllocationsBy(std::function<absl::Status(const v1::AllocateRequest&)> judge);
  // Before they are sent.
  void ChangeAllocateReplies(std::function<void(v1::AllocateResponse&)> change);
  void ChangeOpenSegmentReplies(std::function<void(v1::OpenSegmentResponse&)> change);
  // Calls but Watch do nothing for as long as this holds, and nothing at all if they end
  // meanwhile.
  void HoldCalls(bool hold);
  // The same, from after that many calls on.
  void HoldCallsAfter(int calls);
  int held_calls() const;
  // Blocks are granted, but their replies are kept for as long as this holds; a call
  // that ends meanwhile never has one.
  void HoldAllocateReplies(bool hold);
  // Blocks are granted, and their replies are lost: the calls end with this.
  void LoseAllocateReplies(const grpc::Status& ending);
  // Segments are closed, and the replies are lost: the calls end with this.
  void LoseCloseReplies(const grpc::Status& ending);
  // Calls of CloseSegment that were answered, or whose replies were lost.
  int closes() const;
  // As HoldAllocateReplies for calls of Release that name a request.
  void HoldUndoReplies(bool hold);
  // Calls whose replies are kept now.
  int held_replies() const;
  // The last AllocateRequest.
  v1::AllocateRequest last_allocate() const;
  // Calls of Release that name blocks, each with its blocks.
  std::vector<std::vector<uint64_t>> releases() const;
  // Calls of Release that name a request instead.
  std::vector<v1::ReleaseRequest> undone() const;
  // The last OpenSegmentRequest.
  v1::OpenSegmentRequest last_open_segment() const;
  // To the session that watches, once one does.
  void Tell(const v1::WatchEvent& event);
  // What it said so far, and when.
  struct IdleReport {
    std::chrono::steady_clock::time_point time;
    v1::WatchRequest report;
  };
  std::vector<IdleReport> idle_reports() const;
  // Watches now open.
  int watches() const;
  // From now on they end with this as soon as they begin; OK: they go on.
  void RefuseWatchesWith(const grpc::Status& refusal);
  int refused_watches() const;
  size_t leased_blocks() const;
  // As if its lease had ended in another way.
  void ForgetBlock(uint64_t id);
  // Sessions that hold the segment or wait for it.
  int segment_users(const std::string& name) const;
  // OpenSegment calls that wait now.
  int waiting_calls() const;

 private:
  using WatchStream = grpc::ServerReaderWriter<v1::WatchEvent, v1::WatchRequest>;
  struct Segment {
    uint64_t id = 0;
    uint64_t size = 0;
    std::vector<v1::Block> blocks;
    int users = 0;
    std::optional<v1::Checksum> checksum;
  };

  grpc::Status Allocate(grpc::ServerContext* context, const v1::AllocateRequest* request,
                        v1::AllocateResponse* response) override;
  grpc::Status Release(grpc::ServerContext* context, const v1::ReleaseRequest* request,
                       v1::ReleaseResponse* response) override;
  grpc::Status OpenSegment(grpc::ServerContext* context, const v1::OpenSegmentRequest* request,
                           v1::OpenSegmentResponse* response) override;
  grpc::Status SealSegment(grpc::ServerContext* context, const v1::SealSegmentRequest* request,
                           v1::SealSegmentResponse* response) override;
  grpc::Status CloseSegment(grpc::ServerContext* context, const v1::CloseSegmentRequest* request,
                            v1::CloseSegmentResponse* response) override;

  grpc::Status Watch(grpc::ServerContext* context, WatchStream* stream) override;
  // Writes what there is to tell, until the watch ends.
  void TellEvents(grpc::ServerContext& context, WatchStream& stream);

  void Start(uint32_t device_count);
  void StartGrpc();
  // The error that the call must end with, if any: no or a wrong token, or what
  // the test wants.
  grpc::Status Check(const grpc::ServerContext& context);
  // The same, after it was held.
  grpc::Status CheckHeld(const grpc::ServerContext& context);
  // Keeps a call while `held`, which the test sets, says so, and counts it meanwhile.
  void Hold(const bool& held, const grpc::ServerContext& context, int& count)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<v1::Block> MakeBlock(uint64_t size, uint32_t device_index);
  // What the request gets, or has already got.
  absl::StatusOr<v1::AllocateResponse> Grant(const v1::AllocateRequest& request);
  Segment* FindSegment(uint64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  BlockSource& source_;
  uint32_t device_count_ = 0;
  const TempDir dir_;
  mutable Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::string token_ ABSL_GUARDED_BY(mutex_) = kFakeToken;
  uint64_t session_id_ ABSL_GUARDED_BY(mutex_) = 7;
  bool hold_calls_ ABSL_GUARDED_BY(mutex_) = false;
  int hold_after_ ABSL_GUARDED_BY(mutex_) = 0;  // 0: never.
  int held_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::Status failure_ ABSL_GUARDED_BY(mutex_);
  int failed_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  std::function<absl::Status(const v1::AllocateRequest&)> judge_ ABSL_GUARDED_BY(mutex_);
  std::function<void(v1::AllocateResponse&)> change_allocate_ ABSL_GUARDED_BY(mutex_);
  std::function<void(v1::OpenSegmentResponse&)> change_open_segment_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, UniqueFd> leased_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Segment> segments_ ABSL_GUARDED_BY(mutex_);
  v1::AllocateRequest last_allocate_ ABSL_GUARDED_BY(mutex_);
  v1::OpenSegmentRequest last_open_segment_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<uint64_t>> releases_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ReleaseRequest> undone_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, v1::AllocateResponse> grants_ ABSL_GUARDED_BY(mutex_);  // By request id.
  bool hold_allocate_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status allocate_ending_ ABSL_GUARDED_BY(mutex_);
  grpc::Status close_ending_ ABSL_GUARDED_BY(mutex_);
  int closes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool hold_undo_ ABSL_GUARDED_BY(mutex_) = false;
  int held_replies_ ABSL_GUARDED_BY(mutex_) = 0;
  int watches_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::Status watch_refusal_ ABSL_GUARDED_BY(mutex_);
  int refused_watches_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<v1::WatchEvent> to_tell_ ABSL_GUARDED_BY(mutex_);
  std::vector<IdleReport> idle_reports_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FakeSessionSocket> session_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_CLIENT_FAKE_DAEMON_H_
