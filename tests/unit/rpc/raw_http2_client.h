// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A client that speaks just enough HTTP/2 to be a nuisance: it begins a call and
// then never reads.
#ifndef TESTS_UNIT_RPC_RAW_HTTP2_CLIENT_H_
#define TESTS_UNIT_RPC_RAW_HTTP2_CLIENT_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "common/posix/unique_fd.h"

namespace heapbroker {

class RawHttp2Client {
 public:
  // Connects to a unix socket; `connected()` tells whether that worked.
  explicit RawHttp2Client(const std::string& path);

  bool connected() const { return socket_.valid(); }

  // Begins a call of `method` ("/package.Service/Method"), with `token` as the
  // session's where it is not empty, and allows the server to send no byte of an
  // answer. All must be short.
  bool StartCall(absl::string_view method, absl::string_view request = "",
                 absl::string_view token = "");

  // Sends frames that want an answer until the server, whose answers nobody
  // reads, takes no more: its socket is full. As a process that was stopped.
  bool FillTheServersSocket();

 private:
  bool Send(absl::string_view bytes);

  UniqueFd socket_;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_RPC_RAW_HTTP2_CLIENT_H_
