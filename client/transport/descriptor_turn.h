// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Whose turn it is to add a descriptor of a block to this process.
#ifndef CLIENT_TRANSPORT_DESCRIPTOR_TURN_H_
#define CLIENT_TRANSPORT_DESCRIPTOR_TURN_H_

#include "client/transport/turn.h"

namespace heapbroker {

// One for the whole process, because descriptor numbers are: after a failed
// import the importer asks whether the number that it gave to the driver still
// is the block's open file. Had the driver closed it, and another thread then
// received or duplicated the same file under the same number, the answer would
// be yes, and that thread would lose its descriptor. So an import has the turn
// from its duplicate to the end of that check, and a descriptor is received in a
// turn of its own.
//
// While a driver does not return from an import, every other import and fetch of
// the process waits, a fetch for its timeout. A forked child begins with a turn
// that nobody has. Thread-safe.
Turn& DescriptorTurn();

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_DESCRIPTOR_TURN_H_
