// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/methods.h"

#include <utility>

namespace heapbroker {
namespace {

// `Request`, `Response`: the method's messages. `request_method` is the generated
// RequestX, `handler` the service's method of that name, `admit` as in UnaryMethodOf.
template <typename Request, typename Response, typename Stub, typename RequestMethod,
          typename Service, typename Admit>
UnaryMethod BindUnary(grpc::ServerCompletionQueue& queue, Stub& stub, RequestMethod request_method,
                      Service& service,
                      void (Service::*handler)(const Caller&, const Request&, UnaryReply<Response>),
                      Admit admit) {
  return UnaryMethodOf<Request, Response>(
      [&queue, &stub, request_method](auto* context, auto* request, auto* writer, void* tag) {
        (stub.*request_method)(context, request, writer, &queue, &queue, tag);
      },
      std::move(admit),
      [&service, handler](const Caller& caller, const Request& request,
                          UnaryReply<Response> reply) {
        (service.*handler)(caller, request, std::move(reply));
      });
}

// Of methods that need no session, or judge for themselves what they need.
absl::Status Anyone(const Caller& /*caller*/) { return absl::OkStatus(); }

}  // namespace

RpcMethods::RpcMethods(MemoryBrokerService& memory, PoolStatsService& stats, AdminService& admin,
                       HealthService& health)
    : memory_(memory), stats_(stats), admin_(admin), health_(health) {}

void RpcMethods::Register(grpc::ServerBuilder& builder) {
  builder.RegisterService(&memory_stub_);
  builder.RegisterService(&stats_stub_);
  builder.RegisterService(&admin_stub_);
  builder.RegisterService(&health_stub_);
}

void RpcMethods::ExpectCalls(grpc::ServerCompletionQueue& queue, LiveCalls& live, Beats& beats) {
  BindMemory(queue);
  BindStats(queue, beats);
  BindAdmin(queue);
  BindHealth(queue);
  for (const UnaryMethod& method : unary_) UnaryCall::Expect(method, live);
  for (const StreamMethod& method : streams_) StreamCall::Expect(method, live);
  for (const BidiMethod& method : bidi_) BidiCall::Expect(method, live);
}

void RpcMethods::BindMemory(grpc::ServerCompletionQueue& queue) {
  using Stub = decltype(memory_stub_);
  using Service = MemoryBrokerService;
  const auto bind = [&](auto request_method, auto handler) {
    unary_.push_back(BindUnary(queue, memory_stub_, request_method, memory_, handler,
                               [this](const Caller& caller) { return memory_.Admit(caller); }));
  };
  bind(&Stub::RequestAllocate, &Service::Allocate);
  bind(&Stub::RequestRelease, &Service::Release);
  bind(&Stub::RequestOpenSegment, &Service::OpenSegment);
  bind(&Stub::RequestSealSegment, &Service::SealSegment);
  bind(&Stub::RequestCloseSegment, &Service::CloseSegment);
  bidi_.push_back(BidiMethodOf<v1::WatchRequest, v1::WatchEvent>(
      [this, &queue](auto* context, auto* stream, void* tag) {
        memory_stub_.RequestWatch(context, stream, &queue, &queue, tag);
      },
      [this](const Caller& caller, MemoryBrokerService::WatchReply reply) {
        memory_.Watch(caller, std::move(reply));
      }));
}

void RpcMethods::BindStats(grpc::ServerCompletionQueue& queue, Beats& beats) {
  using Stub = decltype(stats_stub_);
  using Service = PoolStatsService;
  const auto bind = [&](auto request_method, auto handler) {
    unary_.push_back(BindUnary(queue, stats_stub_, request_method, stats_, handler, Anyone));
  };
  bind(&Stub::RequestGetStats, &Service::GetStats);
  bind(&Stub::RequestListSessions, &Service::ListSessions);
  bind(&Stub::RequestListLeases, &Service::ListLeases);
  bind(&Stub::RequestListSegments, &Service::ListSegments);
  streams_.push_back(StreamMethodOf<v1::WatchStatsRequest, v1::GetStatsResponse>(
      [this, &queue](auto* context, auto* request, auto* writer, void* tag) {
        stats_stub_.RequestWatchStats(context, request, writer, &queue, &queue, tag);
      },
      [this, &beats](const Caller& caller, const v1::WatchStatsRequest& request,
                     StreamReply<v1::GetStatsResponse> reply) {
        stats_.WatchStats(caller, request, std::move(reply), beats);
      }));
}

void RpcMethods::BindAdmin(grpc::ServerCompletionQueue& queue) {
  using Stub = decltype(admin_stub_);
  unary_.push_back(
      BindUnary(queue, admin_stub_, &Stub::RequestTrim, admin_, &AdminService::Trim, Anyone));
}

void RpcMethods::BindHealth(grpc::ServerCompletionQueue& queue) {
  using Stub = decltype(health_stub_);
  using grpc::health::v1::HealthCheckRequest;
  using grpc::health::v1::HealthCheckResponse;
  unary_.push_back(
      BindUnary(queue, health_stub_, &Stub::RequestCheck, health_, &HealthService::Check, Anyone));
  streams_.push_back(StreamMethodOf<HealthCheckRequest, HealthCheckResponse>(
      [this, &queue](auto* context, auto* request, auto* writer, void* tag) {
        health_stub_.RequestWatch(context, request, writer, &queue, &queue, tag);
      },
      [this](const Caller& caller, const HealthCheckRequest& request,
             StreamReply<HealthCheckResponse> reply) {
        health_.Watch(caller, request, std::move(reply));
      }));
}

}  // namespace heapbroker
