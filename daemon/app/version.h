// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// The daemon's version, as CMakeLists.txt has it.
#ifndef DAEMON_APP_VERSION_H_
#define DAEMON_APP_VERSION_H_

namespace heapbroker {

inline constexpr char kVersion[] = HEAPBROKER_VERSION;

}  // namespace heapbroker
#endif  // DAEMON_APP_VERSION_H_
