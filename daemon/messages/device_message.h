// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// The core's view of a device as the message that both sockets send.
#ifndef DAEMON_MESSAGES_DEVICE_MESSAGE_H_
#define DAEMON_MESSAGES_DEVICE_MESSAGE_H_

#include "daemon/core/device_info.h"
#include "heapbroker/v1/memory.pb.h"

namespace heapbroker {

v1::Device DeviceMessage(const DeviceInfo& device);

v1::HandleType HandleTypeMessage(HandleType type);

}  // namespace heapbroker
#endif  // DAEMON_MESSAGES_DEVICE_MESSAGE_H_
