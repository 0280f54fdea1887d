// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The daemon's version.
#ifndef DAEMON_APP_VERSION_H_
#define DAEMON_APP_VERSION_H_

namespace heapbroker {

extern const char kVersion[];  // As CMakeLists.txt has it: "0.1.0".

}  // namespace heapbroker
#endif  // DAEMON_APP_VERSION_H_
