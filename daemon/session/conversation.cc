// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "daemon/session/conversation.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text.h"
#include "daemon/messages/device_message.h"
#include "daemon/messages/parse.h"

namespace heapbroker {
namespace {

// The answer to a request that the session survives.
Answer Refuse(const absl::Status& status) { return Answer{.packet = RefusalPacket(status)}; }

// The answer to one that it does not.
Answer RefuseAndEnd(const absl::Status& status) {
  return Answer{.packet = RefusalPacket(status), .ends = std::string(status.message())};
}

absl::Status CheckVersion(const v1::Hello& hello) {
  if (hello.protocol_major() == kProtocolMajor) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the client speaks protocol ", hello.protocol_major(), ".",
                   hello.protocol_minor(), " and this daemon ", kProtocolMajor, ".", kProtocolMinor,
                   "; use a client library and a daemon of the same major version"));
}

absl::Status CheckHello(const v1::Hello& hello) {
  HB_RETURN_IF_ERROR(CheckVersion(hello));
  return CheckName("hello.name", hello.name());
}

}  // namespace

std::string RefusalPacket(const absl::Status& status) {
  v1::SessionReply reply;
  reply.mutable_refusal()->set_code(static_cast<uint32_t>(status.code()));
  reply.mutable_refusal()->set_message(std::string(status.message()));
  return reply.SerializeAsString();
}

Answer Conversation::Handle(absl::string_view packet, size_t max_descriptors) {
  v1::SessionRequest request;
  if (absl::Status parsed = ParseMessage(packet, request); !parsed.ok()) {
    return RefuseAndEnd(parsed);
  }
  if (request.has_hello()) return HandleHello(request.hello());
  if (open_ == nullptr) {
    return RefuseAndEnd(absl::FailedPreconditionError("the first request must be hello"));
  }
  if (request.has_fetch()) return HandleFetch(request.fetch(), max_descriptors);
  // Minor versions only add, and a client may be ahead.
  return Refuse(
      absl::UnimplementedError(absl::StrCat("this daemon speaks protocol ", kProtocolMajor, ".",
                                            kProtocolMinor, ", which has no such request")));
}

Answer Conversation::HandleHello(const v1::Hello& hello) {
  if (open_ != nullptr) {
    return RefuseAndEnd(absl::FailedPreconditionError("hello: was said already; say it once"));
  }
  if (absl::Status checked = CheckHello(hello); !checked.ok()) return RefuseAndEnd(checked);
  absl::StatusOr<std::unique_ptr<OpenSession>> opened = gate_.Open({.uid = peer_.uid,
                                                                    .gid = peer_.gid,
                                                                    .pid = peer_.pid,
                                                                    .name = hello.name(),
                                                                    .observer = hello.observer()});
  if (!opened.ok()) return RefuseAndEnd(opened.status());
  open_ = *std::move(opened);
  return Answer{.packet = Welcome().SerializeAsString()};
}

v1::SessionReply Conversation::Welcome() const {
  v1::SessionReply reply;
  v1::Welcome& welcome = *reply.mutable_welcome();
  const SessionToken& token = open_->token();
  welcome.set_token(token.data(), token.size());
  welcome.set_session_id(open_->session().id.value());
  welcome.set_protocol_major(kProtocolMajor);
  welcome.set_protocol_minor(kProtocolMinor);
  for (const DeviceBroker* device : open_->devices()) {
    *welcome.add_devices() = DeviceMessage(device->info());
  }
  *welcome.mutable_limits() = limits_;
  return reply;
}

Answer Conversation::HandleFetch(const v1::Fetch& fetch, size_t max_descriptors) const {
  const size_t asked = static_cast<size_t>(fetch.block_ids_size());
  if (asked < 1 || asked > kMaxBlocksPerFetch) {
    return Refuse(absl::InvalidArgumentError(absl::StrCat(
        "fetch.block_ids: has ", asked, " entries; allowed are 1 to ", kMaxBlocksPerFetch)));
  }
  v1::SessionReply reply;
  Answer answer;
  for (size_t i = 0; i < std::min(asked, max_descriptors); ++i) {
    absl::StatusOr<FetchedBlock> fetched =
        open_->Fetch(BlockId(fetch.block_ids(static_cast<int>(i))));
    if (!fetched.ok()) return Refuse(fetched.status());
    if (fetched->exported == nullptr || fetched->exported->fd() < 0) {
      return Refuse(absl::UnimplementedError("fetch: this device has no descriptors to send"));
    }
    reply.mutable_fetched()->add_block_ids(fetched->id.value());
    answer.exported.push_back(std::move(fetched->exported));
  }
  answer.packet = reply.SerializeAsString();
  return answer;
}

}  // namespace heapbroker
