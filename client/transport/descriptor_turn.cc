// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "client/transport/descriptor_turn.h"

#include <pthread.h>

#include <new>

namespace heapbroker {

Turn& DescriptorTurn() {
  // Passed to nobody's constructor, unlike all else: what it guards, the table of
  // descriptors, is the process's, and clients and importers that know nothing of
  // each other share it. Never destroyed: at exit other threads may still run.
  static Turn* const turn = new Turn;
  // The thread that had the turn at the time of a fork is not in the child.
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { new (turn) Turn; });
  return *turn;
}

}  // namespace heapbroker
