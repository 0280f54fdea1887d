// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/unit/client/fake_daemon.h"

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "common/base/status_macros.h"
#include "common/grpc/session_metadata.h"
#include "common/grpc/status.h"
#include "common/posix/posix_error.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

SessionAnswer Welcome(const v1::Device& device, uint32_t device_count, const std::string& token,
                      uint64_t session_id) {
  SessionAnswer answer;
  v1::Welcome& welcome = *answer.reply.mutable_welcome();
  welcome.set_token(token);
  welcome.set_session_id(session_id);
  welcome.set_protocol_major(1);
  for (uint32_t i = 0; i < device_count; ++i) {
    *welcome.add_devices() = device;
    welcome.mutable_devices(static_cast<int>(i))->set_index(i);
  }
  welcome.mutable_limits()->set_max_blocks_per_call(4);
  welcome.mutable_limits()->set_max_blocks_per_fetch(3);
  return answer;
}

}  // namespace

absl::StatusOr<BlockSource::Made> MemfdBlockSource::Make(uint64_t size) {
  Made made{.fd = UniqueFd(memfd_create("block", MFD_CLOEXEC))};
  if (!made.fd || ftruncate(made.fd.get(), static_cast<off_t>(size)) != 0) {
    return PosixError(errno, "cannot make a memory file");
  }
  made.block.set_size(size);
  made.block.set_allocation_size(size);
  made.block.set_handle_type(v1::HANDLE_TYPE_OPAQUE_FD);
  return made;
}

v1::Device MemfdBlockSource::Device() const {
  v1::Device device;
  device.set_name("no device");
  device.set_device_uuid(std::string(16, 'd'));
  device.set_driver_uuid(std::string(16, 'r'));
  device.set_max_allocation_size(uint64_t{1} << 30);
  device.add_heaps()->set_size(uint64_t{1} << 30);
  device.add_memory_types()->set_exportable(true);
  return device;
}

absl::Status NoMemoryError(const std::string& message, const v1::MemoryRefusal& refusal) {
  google::rpc::Status details;
  details.add_details()->PackFrom(refusal);
  absl::Status status = absl::ResourceExhaustedError(message);
  SetStatusDetails(status, details.SerializeAsString());
  return status;
}

FakeDaemon::FakeDaemon(BlockSource& source, uint32_t device_count) : source_(source) {
  Start(device_count);
}

void FakeDaemon::Start(uint32_t device_count) {
  device_count_ = device_count;
  session_ = std::make_unique<FakeSessionSocket>(
      dir_.File("session.sock"),
      [this](const v1::SessionRequest& request) { return Answer(request); });
  StartGrpc();
}

void FakeDaemon::StartGrpc() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + dir_.File("broker.sock"), grpc::InsecureServerCredentials());
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
  EXPECT_NE(server_, nullptr);
}

void FakeDaemon::Restart(uint32_t device_count) {
  Stop();
  {
    MutexLock lock(mutex_);
    stopping_ = false;
    ++token_.back();
    ++session_id_;
    leased_.clear();
    segments_.clear();
    grants_.clear();
    releases_.clear();
    undone_.clear();
    idle_reports_.clear();
  }
  Start(device_count);
}

FakeDaemon::~FakeDaemon() { Stop(); }

SessionAnswer FakeDaemon::Answer(const v1::SessionRequest& request) {
  MutexLock lock(mutex_);
  if (request.has_hello()) return Welcome(source_.Device(), device_count_, token_, session_id_);
  SessionAnswer answer;
  for (const uint64_t id : request.fetch().block_ids()) {
    const auto found = leased_.find(id);
    if (found == leased_.end()) return Refuse(5, "no such block");
    absl::StatusOr<UniqueFd> copy = DuplicateFd(found->second.get());
    if (!copy.ok()) return Refuse(13, copy.status().ToString());
    answer.reply.mutable_fetched()->add_block_ids(id);
    answer.fds.push_back(*std::move(copy));
  }
  return answer;
}

void FakeDaemon::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  session_.reset();
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
  unlink(dir_.File("broker.sock").c_str());
}

void FakeDaemon::BreakConnections() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
  StartGrpc();
}

void FakeDaemon::FailCallsWith(const grpc::Status& status) {
  MutexLock lock(mutex_);
  failure_ = status;
  failed_calls_ = 0;
}

int FakeDaemon::failed_calls() const {
  MutexLock lock(mutex_);
  return failed_calls_;
}

void FakeDaemon::RefuseAllocationsWith(const absl::Status& refusal) {
  MutexLock lock(mutex_);
  refusal_ = refusal;
}

void FakeDaemon::JudgeAllocationsBy(std::function<absl::Status(const v1::AllocateRequest&)> judge) {
  MutexLock lock(mutex_);
  judge_ = std::move(judge);
}

void FakeDaemon::ChangeAllocateReplies(std::function<void(v1::AllocateResponse&)> change) {
  MutexLock lock(mutex_);
  change_allocate_ = std::move(change);
}

void FakeDaemon::ChangeOpenSegmentReplies(std::function<void(v1::OpenSegmentResponse&)> change) {
  MutexLock lock(mutex_);
  change_open_segment_ = std::move(change);
}

v1::AllocateRequest FakeDaemon::last_allocate() const {
  MutexLock lock(mutex_);
  return last_allocate_;
}

void FakeDaemon::HoldCalls(bool hold) {
  MutexLock lock(mutex_);
  hold_calls_ = hold;
}

void FakeDaemon::HoldCallsAfter(int calls) {
  MutexLock lock(mutex_);
  hold_after_ = calls;
}

int FakeDaemon::held_calls() const {
  MutexLock lock(mutex_);
  return held_calls_;
}

void FakeDaemon::HoldAllocateReplies(bool hold) {
  MutexLock lock(mutex_);
  hold_allocate_ = hold;
}

void FakeDaemon::LoseAllocateReplies(const grpc::Status& ending) {
  MutexLock lock(mutex_);
  allocate_ending_ = ending;
}

void FakeDaemon::LoseCloseReplies(const grpc::Status& ending) {
  MutexLock lock(mutex_);
  close_ending_ = ending;
}

int FakeDaemon::closes() const {
  MutexLock lock(mutex_);
  return closes_;
}

void FakeDaemon::HoldUndoReplies(bool hold) {
  MutexLock lock(mutex_);
  hold_undo_ = hold;
}

int FakeDaemon::held_replies() const {
  MutexLock lock(mutex_);
  return held_replies_;
}

std::vector<v1::ReleaseRequest> FakeDaemon::undone() const {
  MutexLock lock(mutex_);
  return undone_;
}

v1::OpenSegmentRequest FakeDaemon::last_open_segment() const {
  MutexLock lock(mutex_);
  return last_open_segment_;
}

void FakeDaemon::Tell(const v1::WatchEvent& event) {
  MutexLock lock(mutex_);
  to_tell_.push_back(event);
}

std::vector<FakeDaemon::IdleReport> FakeDaemon::idle_reports() const {
  MutexLock lock(mutex_);
  return idle_reports_;
}

int FakeDaemon::watches() const {
  MutexLock lock(mutex_);
  return watches_;
}

void FakeDaemon::RefuseWatchesWith(const grpc::Status& refusal) {
  MutexLock lock(mutex_);
  watch_refusal_ = refusal;
}

int FakeDaemon::refused_watches() const {
  MutexLock lock(mutex_);
  return refused_watches_;
}

std::vector<std::vector<uint64_t>> FakeDaemon::releases() const {
  MutexLock lock(mutex_);
  return releases_;
}

size_t FakeDaemon::leased_blocks() const {
  MutexLock lock(mutex_);
  return leased_.size();
}

void FakeDaemon::ForgetBlock(uint64_t id) {
  MutexLock lock(mutex_);
  leased_.erase(id);
}

int FakeDaemon::segment_users(const std::string& name) const {
  MutexLock lock(mutex_);
  const auto found = segments_.find(name);
  return found == segments_.end() ? 0 : found->second.users;
}

int FakeDaemon::waiting_calls() const {
  MutexLock lock(mutex_);
  return waiting_calls_;
}

grpc::Status FakeDaemon::Check(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find(kSessionMetadataKey);
  MutexLock lock(mutex_);
  if (found == context.client_metadata().end() || found->second != token_) {
    return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "unknown token");
  }
  if (!failure_.ok()) ++failed_calls_;
  return failure_;
}

grpc::Status FakeDaemon::CheckHeld(const grpc::ServerContext& context) {
  {
    MutexLock lock(mutex_);
    const bool held = hold_calls_;
    Hold(hold_calls_, context, held_calls_);
    if (held && (context.IsCancelled() || stopping_)) return grpc::Status::CANCELLED;
  }
  const grpc::Status status = Check(context);
  MutexLock lock(mutex_);
  if (hold_after_ > 0 && --hold_after_ == 0) hold_calls_ = true;
  return status;
}

absl::StatusOr<v1::Block> FakeDaemon::MakeBlock(uint64_t size, uint32_t device_index) {
  absl::StatusOr<BlockSource::Made> made = source_.Make(size);
  if (!made.ok()) return made.status();
  MutexLock lock(mutex_);
  made->block.set_block_id(++last_id_);
  made->block.set_device_index(device_index);
  leased_[last_id_] = std::move(made->fd);
  return made->block;
}

void FakeDaemon::Hold(const bool& held, const grpc::ServerContext& context, int& count) {
  ++count;
  while (held && !context.IsCancelled() && !stopping_) {
    changed_.WaitFor(mutex_, std::chrono::milliseconds(5));
  }
  --count;
}

absl::StatusOr<v1::AllocateResponse> FakeDaemon::Grant(const v1::AllocateRequest& request) {
  {
    MutexLock lock(mutex_);
    last_allocate_ = request;
    if (!refusal_.ok()) return refusal_;
    if (judge_) HB_RETURN_IF_ERROR(judge_(request));
    const auto found = grants_.find(request.request_id());
    if (found != grants_.end()) return found->second;
  }
  v1::AllocateResponse response;
  for (const v1::BlockRequest& block : request.blocks()) {
    absl::StatusOr<v1::Block> made = MakeBlock(block.size(), request.device_index());
    if (!made.ok()) return made.status();
    *response.add_blocks() = *made;
  }
  MutexLock lock(mutex_);
  if (request.request_id() != 0) grants_[request.request_id()] = response;
  return response;
}

grpc::Status FakeDaemon::Allocate(grpc::ServerContext* context, const v1::AllocateRequest* request,
                                  v1::AllocateResponse* response) {
  if (grpc::Status status = CheckHeld(*context); !status.ok()) return status;
  absl::StatusOr<v1::AllocateResponse> granted = Grant(*request);
  if (!granted.ok()) return ToGrpcStatus(granted.status());
  *response = *std::move(granted);
  MutexLock lock(mutex_);
  Hold(hold_allocate_, *context, held_replies_);
  if (!allocate_ending_.ok()) return allocate_ending_;
  if (change_allocate_) change_allocate_(*response);
  return grpc::Status::OK;
}

grpc::Status FakeDaemon::Release(grpc::ServerContext* context, const v1::ReleaseRequest* request,
                                 v1::ReleaseResponse*) {
  if (grpc::Status status = CheckHeld(*context); !status.ok()) return status;
  MutexLock lock(mutex_);
  if (request->request_id() != 0) {
    Hold(hold_undo_, *context, held_replies_);
    undone_.push_back(*request);
    const auto found = grants_.find(request->request_id());
    if (found == grants_.end()) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such request");
    for (const v1::Block& block : found->second.blocks()) leased_.erase(block.block_id());
    grants_.erase(found);
    return grpc::Status::OK;
  }
  const std::vector<uint64_t> ids(request->block_ids().begin(), request->block_ids().end());
  releases_.push_back(ids);
  for (const uint64_t id : ids) {
    if (leased_.count(id) == 0) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such block");
  }
  for (const uint64_t id : ids) leased_.erase(id);
  return grpc::Status::OK;
}

grpc::Status FakeDaemon::Watch(grpc::ServerContext* context, WatchStream* stream) {
  if (grpc::Status status = Check(*context); !status.ok()) return status;
  {
    MutexLock lock(mutex_);
    if (!watch_refusal_.ok()) {
      ++refused_watches_;
      return watch_refusal_;
    }
    ++watches_;
  }
  std::thread reader([&] {
    v1::WatchRequest report;
    while (stream->Read(&report)) {
      MutexLock lock(mutex_);
      idle_reports_.push_back({.time = std::chrono::steady_clock::now(), .report = report});
    }
  });
  TellEvents(*context, *stream);
  // Otherwise the other thread would read until the client has had enough.
  context->TryCancel();
  reader.join();
  MutexLock lock(mutex_);
  --watches_;
  return grpc::Status::CANCELLED;
}

void FakeDaemon::TellEvents(grpc::ServerContext& context, WatchStream& stream) {
  while (true) {
    v1::WatchEvent event;
    {
      MutexLock lock(mutex_);
      while (to_tell_.empty() && !stopping_ && !context.IsCancelled()) {
        changed_.WaitFor(mutex_, std::chrono::milliseconds(5));
      }
      if (stopping_ || context.IsCancelled()) return;
      event = to_tell_.front();
      to_tell_.pop_front();
    }
    stream.Write(event);
  }
}

grpc::Status FakeDaemon::OpenSegment(grpc::ServerContext* context,
                                     const v1::OpenSegmentRequest* request,
                                     v1::OpenSegmentResponse* response) {
  if (grpc::Status status = CheckHeld(*context); !status.ok()) return status;
  bool created = false;
  {
    MutexLock lock(mutex_);
    last_open_segment_ = *request;
    const auto [found, inserted] = segments_.try_emplace(request->name());
    created = inserted;
    if (created) found->second = Segment{.id = ++last_id_, .size = request->size()};
  }
  std::vector<v1::Block> blocks;
  if (created) {
    // Two blocks, so that the library has to join them.
    for (const uint64_t size : {request->size() / 2, request->size() - request->size() / 2}) {
      absl::StatusOr<v1::Block> made = MakeBlock(size, request->device_index());
      if (!made.ok()) return ToGrpcStatus(made.status());
      blocks.push_back(*made);
    }
  }
  MutexLock lock(mutex_);
  Segment& segment = segments_[request->name()];
  if (created) segment.blocks = blocks;
  ++waiting_calls_;
  while (!created && !segment.checksum && !context->IsCancelled() && !stopping_) {
    changed_.WaitFor(mutex_, std::chrono::milliseconds(5));
  }
  --waiting_calls_;
  if (context->IsCancelled() || stopping_) return grpc::Status::CANCELLED;
  ++segment.users;
  response->set_segment_id(segment.id);
  response->set_writer(created);
  response->set_size(segment.size);
  for (const v1::Block& block : segment.blocks) *response->add_blocks() = block;
  if (segment.checksum) *response->mutable_checksum() = *segment.checksum;
  if (change_open_segment_) change_open_segment_(*response);
  return grpc::Status::OK;
}

FakeDaemon::Segment* FakeDaemon::FindSegment(uint64_t id) {
  for (auto& [name, segment] : segments_) {
    if (segment.id == id) return &segment;
  }
  return nullptr;
}

grpc::Status FakeDaemon::SealSegment(grpc::ServerContext* context,
                                     const v1::SealSegmentRequest* request,
                                     v1::SealSegmentResponse*) {
  if (grpc::Status status = CheckHeld(*context); !status.ok()) return status;
  {
    MutexLock lock(mutex_);
    Segment* const segment = FindSegment(request->segment_id());
    if (segment == nullptr) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such segment");
    segment->checksum = request->checksum();
  }
  changed_.NotifyAll();
  return grpc::Status::OK;
}

grpc::Status FakeDaemon::CloseSegment(grpc::ServerContext* context,
                                      const v1::CloseSegmentRequest* request,
                                      v1::CloseSegmentResponse*) {
  if (grpc::Status status = CheckHeld(*context); !status.ok()) return status;
  MutexLock lock(mutex_);
  ++closes_;
  Segment* const segment = FindSegment(request->segment_id());
  if (segment == nullptr || segment->users == 0) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such segment");
  }
  --segment->users;
  return close_ending_;
}

}  // namespace heapbroker
