// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Bytes of a peer as a message, with an error that the peer can use.
#ifndef DAEMON_MESSAGES_PARSE_H_
#define DAEMON_MESSAGES_PARSE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace heapbroker {

// Replaces `out` by what `bytes` say; unspecified after an error. `bytes` may
// come from anyone, and nothing that they hold is logged.
//
// Text is checked before protobuf parses it: protobuf's parser refuses a string
// that is not UTF-8 as well, but does not say which, and writes a line to
// standard error each time.
//   INVALID_ARGUMENT  a string field is not UTF-8 ("hello.name: is not valid
//                     UTF-8 at byte 3"), or `bytes` are no such message
absl::Status ParseMessage(absl::string_view bytes, google::protobuf::Message& out);

}  // namespace heapbroker
#endif  // DAEMON_MESSAGES_PARSE_H_
