// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// What client_program was told of lost and new sessions, in order.
#ifndef TESTS_INTEGRATION_SESSION_NOTES_H_
#define TESTS_INTEGRATION_SESSION_NOTES_H_

#include <deque>
#include <string>

#include "common/base/mutex.h"
#include "heapbroker/reconnect.h"

namespace heapbroker {

// Must outlive the Client. Thread-safe.
class SessionNotes {
 public:
  SessionHandlers Handlers();

  // "session=7 leases=3,4 segments=weights,other"; waits for it.
  std::string NextLost() { return Next(lost_); }
  // "session=8 same-devices=1"; the same.
  std::string NextReconnected() { return Next(reconnected_); }

 private:
  void Note(std::deque<std::string>& notes, std::string text);
  std::string Next(std::deque<std::string>& notes);

  Mutex mutex_;
  CondVar changed_;
  // The mutex guards both.
  std::deque<std::string> lost_;
  std::deque<std::string> reconnected_;
};

}  // namespace heapbroker
#endif  // TESTS_INTEGRATION_SESSION_NOTES_H_
