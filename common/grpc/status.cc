// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "common/grpc/status.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"

namespace heapbroker {
namespace {

constexpr char kDetailsKey[] = "type.googleapis.com/google.rpc.Status";

}  // namespace

// Both libraries number their codes as google.rpc.Code does.
static_assert(static_cast<int>(absl::StatusCode::kOk) == grpc::StatusCode::OK);
static_assert(static_cast<int>(absl::StatusCode::kNotFound) == grpc::StatusCode::NOT_FOUND);
static_assert(static_cast<int>(absl::StatusCode::kUnauthenticated) ==
              grpc::StatusCode::UNAUTHENTICATED);

void SetStatusDetails(absl::Status& status, absl::string_view details) {
  status.SetPayload(kDetailsKey, absl::Cord(details));
}

std::string StatusDetails(const absl::Status& status) {
  const auto details = status.GetPayload(kDetailsKey);
  return details.has_value() ? std::string(*details) : std::string();
}

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()),
                      StatusDetails(status));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const int code = status.error_code();
  const bool known = code >= grpc::StatusCode::OK && code <= grpc::StatusCode::UNAUTHENTICATED;
  absl::Status result(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown,
                      status.error_message());
  if (!status.error_details().empty()) SetStatusDetails(result, status.error_details());
  return result;
}

}  // namespace heapbroker
