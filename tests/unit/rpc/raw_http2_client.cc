// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/rpc/raw_http2_client.h"

#include <errno.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/grpc/session_metadata.h"
#include "common/posix/unix_socket.h"

namespace heapbroker {
namespace {

// RFC 9113, section 4.1.
std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, absl::string_view payload) {
  const auto byte = [](uint32_t value, int shift) { return static_cast<char>(value >> shift); };
  const uint32_t size = static_cast<uint32_t>(payload.size());
  const char head[] = {
      byte(size, 16),           byte(size, 8),    byte(size, 0),    static_cast<char>(type),
      static_cast<char>(flags), byte(stream, 24), byte(stream, 16), byte(stream, 8),
      byte(stream, 0)};
  return absl::StrCat(absl::string_view(head, sizeof(head)), payload);
}

// RFC 7541, section 6.2.2: a literal field without indexing, both parts under
// 127 bytes.
std::string Field(absl::string_view name, absl::string_view value) {
  return absl::StrCat(std::string(1, '\0'), std::string(1, static_cast<char>(name.size())), name,
                      std::string(1, static_cast<char>(value.size())), value);
}

constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;

}  // namespace

RawHttp2Client::RawHttp2Client(const std::string& path) {
  absl::StatusOr<UniqueFd> socket = ConnectUnix(path, SocketKind::kStream, absl::Seconds(5));
  if (socket.ok()) socket_ = *std::move(socket);
}

bool RawHttp2Client::StartCall(absl::string_view method, absl::string_view request,
                               absl::string_view token) {
  // SETTINGS_INITIAL_WINDOW_SIZE (4) is 0.
  const std::string settings("\0\x04\0\0\0\0", 6);
  std::string fields =
      absl::StrCat(Field(":method", "POST"), Field(":scheme", "http"), Field(":path", method),
                   Field(":authority", "localhost"), Field("content-type", "application/grpc"),
                   Field("te", "trailers"));
  if (!token.empty()) fields += Field(kSessionMetadataKey, absl::Base64Escape(token));
  // gRPC's own head: not compressed, and the size in four bytes.
  const std::string message = absl::StrCat(
      std::string(4, '\0'), std::string(1, static_cast<char>(request.size())), request);
  return Send(absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Frame(kSettings, 0, 0, settings),
                           Frame(kHeaders, kEndHeaders, 1, fields),
                           Frame(kData, kEndStream, 1, message)));
}

bool RawHttp2Client::FillTheServersSocket() {
  std::string frames;
  for (int i = 0; i < 1000; ++i) frames += Frame(kSettings, 0, 0, "");
  // The acknowledgements of twice what a socket holds.
  for (int i = 0; i < 100; ++i) {
    if (!Send(frames)) return errno == EAGAIN || errno == EWOULDBLOCK;
  }
  return true;
}

bool RawHttp2Client::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    timeval limit{.tv_sec = 0, .tv_usec = 200'000};
    setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace heapbroker
