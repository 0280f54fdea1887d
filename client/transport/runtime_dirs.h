// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Where to look for the daemon.
#ifndef CLIENT_TRANSPORT_RUNTIME_DIRS_H_
#define CLIENT_TRANSPORT_RUNTIME_DIRS_H_

#include <string>
#include <vector>

namespace heapbroker {

inline constexpr char kSessionSocketName[] = "session.sock";
inline constexpr char kBrokerSocketName[] = "broker.sock";

// What decides; empty strings are as good as nothing.
struct RuntimeDirSources {
  std::string option;           // ClientOptions::runtime_dir.
  std::string environment;      // $HEAPBROKER_RUNTIME_DIR.
  std::string xdg_runtime_dir;  // $XDG_RUNTIME_DIR.
};

// Reads the environment, unless `option` names the directory. Not while another thread
// changes it, as with getenv.
RuntimeDirSources ReadRuntimeDirSources(const std::string& option);

// The directories to try, in order; at least one. What was named, by option or
// in the environment, is tried alone.
std::vector<std::string> RuntimeDirCandidates(const RuntimeDirSources& sources);

// gRPC's target for a unix socket; the path's special characters are encoded.
std::string GrpcTarget(const std::string& socket_path);

}  // namespace heapbroker
#endif  // CLIENT_TRANSPORT_RUNTIME_DIRS_H_
