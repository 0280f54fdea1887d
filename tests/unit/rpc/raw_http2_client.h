// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A client that speaks just enough HTTP/2 to be a nuisance: it begins calls, reads
// only when it is told to, and acknowledges nothing.
#ifndef TESTS_UNIT_RPC_RAW_HTTP2_CLIENT_H_
#define TESTS_UNIT_RPC_RAW_HTTP2_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

class RawHttp2Client {
 public:
  // What the server may send before anyone reads: no byte of an answer, or as much as
  // HTTP/2 can say.
  enum class Window { kNone, kLargest };

  // Connects to a unix socket; `connected()` tells whether that worked.
  explicit RawHttp2Client(const std::string& path, Window window = Window::kNone);

  bool connected() const { return connected_; }

  struct Call {
    std::string method;        // "/package.Service/Method"
    std::string request = {};  // At most 16 KB.
    std::string token = {};    // The session's; empty: none.
    std::string timeout = {};  // As gRPC writes it: "10S"; empty: none.
    // Bytes that the request still lacks, so that it never arrives.
    size_t missing = 0;
  };
  // Begins one call more. False where the server does not take it any more.
  bool StartCall(const Call& call);

  // Sends frames that want an answer until the server, whose answers nobody
  // reads, takes no more: its socket is full. As a process that was stopped.
  bool FillTheServersSocket();

  // Says that nothing more will come, and keeps the socket.
  void EndSending();

  // What the server has said so far.
  struct Heard {
    size_t ended = 0;     // Calls that it has ended with a status.
    size_t reset = 0;     // Those that it has thrown away.
    bool closed = false;  // The connection is.
  };
  // Reads what is there.
  const Heard& Read();

 private:
  bool Send(absl::string_view bytes);
  void TakeFrames();

  UniqueFd socket_;
  bool connected_ = false;
  uint32_t next_stream_ = 1;
  std::string unread_;  // The beginning of a frame.
  Heard heard_;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_RPC_RAW_HTTP2_CLIENT_H_
