// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctl/fake_services.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/grpc/session_metadata.h"
#include "grpcpp/server_builder.h"

namespace heapbroker {
namespace {

constexpr int kLeasesOfAPage = 2;

SessionAnswer Welcome(const v1::SessionRequest& request) {
  if (!request.has_hello() || !request.hello().observer()) return Refuse(9, "no observer");
  SessionAnswer answer;
  v1::Welcome& welcome = *answer.reply.mutable_welcome();
  welcome.set_token(kFakeToken);
  welcome.set_session_id(7);
  welcome.set_protocol_major(1);
  return answer;
}

grpc::Status Check(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find(kSessionMetadataKey);
  if (found != context.client_metadata().end() && found->second == kFakeToken) {
    return grpc::Status::OK;
  }
  return grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "unknown token");
}

}  // namespace

FakeServices::FakeServices(Age age)
    : session_(std::make_unique<FakeSessionSocket>(dir_.File("session.sock"), Welcome)) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + dir_.File("broker.sock"), grpc::InsecureServerCredentials());
  builder.RegisterService(static_cast<v1::PoolStats::Service*>(this));
  if (age == Age::kNew) builder.RegisterService(static_cast<v1::Admin::Service*>(this));
  server_ = builder.BuildAndStart();
  EXPECT_NE(server_, nullptr);
}

FakeServices::~FakeServices() { server_->Shutdown(std::chrono::system_clock::now()); }

void FakeServices::AnswerTrimWith(const grpc::Status& status, const v1::TrimResponse& response) {
  MutexLock lock(mutex_);
  trim_status_ = status;
  trim_response_ = response;
}

std::vector<v1::TrimRequest> FakeServices::trims() const {
  MutexLock lock(mutex_);
  return trims_;
}

void FakeServices::SetLeases(int count) {
  MutexLock lock(mutex_);
  leases_ = count;
}

std::vector<v1::ListLeasesRequest> FakeServices::lease_requests() const {
  MutexLock lock(mutex_);
  return lease_requests_;
}

void FakeServices::SetWatchReplies(int count) {
  MutexLock lock(mutex_);
  watch_replies_ = count;
}

std::vector<v1::WatchStatsRequest> FakeServices::watch_requests() const {
  MutexLock lock(mutex_);
  return watch_requests_;
}

grpc::Status FakeServices::Trim(grpc::ServerContext* context, const v1::TrimRequest* request,
                                v1::TrimResponse* response) {
  if (grpc::Status status = Check(*context); !status.ok()) return status;
  MutexLock lock(mutex_);
  trims_.push_back(*request);
  *response = trim_response_;
  return trim_status_;
}

grpc::Status FakeServices::GetStats(grpc::ServerContext* context, const v1::GetStatsRequest*,
                                    v1::GetStatsResponse* response) {
  if (grpc::Status status = Check(*context); !status.ok()) return status;
  v1::DeviceStats& device = *response->add_devices();
  device.mutable_device()->set_name("no device");
  device.add_pools()->set_name("direct");
  device.add_heaps()->set_size(1 << 30);
  return grpc::Status::OK;
}

grpc::Status FakeServices::WatchStats(grpc::ServerContext* context,
                                      const v1::WatchStatsRequest* request,
                                      grpc::ServerWriter<v1::GetStatsResponse>* writer) {
  if (grpc::Status status = Check(*context); !status.ok()) return status;
  int replies = 0;
  {
    MutexLock lock(mutex_);
    watch_requests_.push_back(*request);
    replies = watch_replies_;
  }
  for (int i = 0; i < replies; ++i) {
    v1::GetStatsResponse reply;
    reply.set_version(absl::StrCat("1.", i));
    if (!writer->Write(reply)) break;
  }
  return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the daemon is shutting down");
}

grpc::Status FakeServices::ListLeases(grpc::ServerContext* context,
                                      const v1::ListLeasesRequest* request,
                                      v1::ListLeasesResponse* response) {
  if (grpc::Status status = Check(*context); !status.ok()) return status;
  MutexLock lock(mutex_);
  lease_requests_.push_back(*request);
  int first = 0;
  if (!request->page_token().empty() && !absl::SimpleAtoi(request->page_token(), &first)) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "page_token");
  }
  const int end = std::min(first + kLeasesOfAPage, leases_);
  for (int i = first; i < end; ++i) {
    v1::LeaseInfo& lease = *response->add_leases();
    lease.set_block_id(static_cast<uint64_t>(i) + 1);
    lease.set_session_id(1);
  }
  if (end < leases_) response->set_next_page_token(absl::StrCat(end));
  return grpc::Status::OK;
}

}  // namespace heapbroker
