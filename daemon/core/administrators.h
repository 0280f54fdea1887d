// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Who may change what others have.
#ifndef DAEMON_CORE_ADMINISTRATORS_H_
#define DAEMON_CORE_ADMINISTRATORS_H_

#include <cstdint>

namespace heapbroker {

// Root and the daemon's own user. Some of everything that there is a bounded number of
// is kept for them, so that nobody else can lock them out.
struct Administrators {
  uint32_t daemon_uid = 0;

  bool Include(uint32_t uid) const { return uid == 0 || uid == daemon_uid; }
};

}  // namespace heapbroker
#endif  // DAEMON_CORE_ADMINISTRATORS_H_
