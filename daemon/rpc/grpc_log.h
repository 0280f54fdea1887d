// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// What gRPC itself would write to standard error.
#ifndef DAEMON_RPC_GRPC_LOG_H_
#define DAEMON_RPC_GRPC_LOG_H_

namespace heapbroker {

// Drops gRPC's own messages, for the whole process: peers can provoke them as
// often as they like, and every error that matters here comes back as a status.
// Not where GRPC_VERBOSITY is set: somebody wants to see them. To be called once,
// before a server or channel is made.
void DropGrpcLog();

}  // namespace heapbroker
#endif  // DAEMON_RPC_GRPC_LOG_H_
