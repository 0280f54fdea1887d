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

std::string BigEndian(uint32_t value) {
  const char bytes[] = {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                        static_cast<char>(value >> 8), static_cast<char>(value)};
  return std::string(bytes, sizeof(bytes));
}

constexpr size_t kFrameHead = 9;
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kResetStream = 3;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kWindowUpdate = 8;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;

constexpr uint32_t kLargestWindow = (uint32_t{1} << 31) - 1;
constexpr uint32_t kFirstWindow = 65535;

}  // namespace

RawHttp2Client::RawHttp2Client(const std::string& path, Window window) {
  absl::StatusOr<UniqueFd> socket = ConnectUnix(path, SocketKind::kStream, absl::Seconds(5));
  if (!socket.ok()) return;
  socket_ = *std::move(socket);
  // SETTINGS_INITIAL_WINDOW_SIZE is 4.
  const bool any = window == Window::kLargest;
  const std::string settings =
      absl::StrCat(std::string("\0\x04", 2), BigEndian(any ? kLargestWindow : 0));
  connected_ = Send(absl::StrCat(
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Frame(kSettings, 0, 0, settings),
      any ? Frame(kWindowUpdate, 0, 0, BigEndian(kLargestWindow - kFirstWindow)) : ""));
}

bool RawHttp2Client::StartCall(const Call& call) {
  std::string fields =
      absl::StrCat(Field(":method", "POST"), Field(":scheme", "http"), Field(":path", call.method),
                   Field(":authority", "localhost"), Field("content-type", "application/grpc"),
                   Field("te", "trailers"));
  if (!call.token.empty()) fields += Field(kSessionMetadataKey, absl::Base64Escape(call.token));
  if (!call.timeout.empty()) fields += Field("grpc-timeout", call.timeout);
  // gRPC's own head: not compressed, and the size.
  const uint32_t size = static_cast<uint32_t>(call.request.size() + call.missing);
  const std::string message = absl::StrCat(std::string(1, '\0'), BigEndian(size), call.request);
  const uint32_t stream = next_stream_;
  next_stream_ += 2;
  return Send(absl::StrCat(Frame(kHeaders, kEndHeaders, stream, fields),
                           Frame(kData, call.missing == 0 ? kEndStream : 0, stream, message)));
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

void RawHttp2Client::EndSending() { shutdown(socket_.get(), SHUT_WR); }

const RawHttp2Client::Heard& RawHttp2Client::Read() {
  std::string bytes(65536, '\0');
  while (true) {
    const ssize_t size = recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (size > 0) {
      unread_.append(bytes, 0, static_cast<size_t>(size));
      TakeFrames();
      continue;
    }
    if (size == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) heard_.closed = true;
    return heard_;
  }
}

void RawHttp2Client::TakeFrames() {
  absl::string_view rest = unread_;
  while (rest.size() >= kFrameHead) {
    const auto byte = [&rest](size_t at) { return static_cast<uint8_t>(rest[at]); };
    const size_t size = kFrameHead + (byte(0) << 16 | byte(1) << 8 | byte(2));
    if (rest.size() < size) break;
    const uint8_t type = byte(3);
    if (type == kHeaders && (byte(4) & kEndStream) != 0) ++heard_.ended;
    if (type == kResetStream) ++heard_.reset;
    rest.remove_prefix(size);
  }
  unread_ = std::string(rest);
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
