// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/benchmark/measured_session.h"

#include "common/base/status_macros.h"

namespace heapbroker {

absl::StatusOr<std::unique_ptr<MeasuredSession>> MeasuredSession::Start(const std::string& name) {
  auto session = std::make_unique<MeasuredSession>();
  // More than the driver's heap has: hardly any of it is ever touched.
  HB_ASSIGN_OR_RETURN(session->daemon, DaemonProcess::Start({.flags = {"--heap-budget=16GiB"}}));
  HB_ASSIGN_OR_RETURN(
      session->client,
      Client::Connect({.name = name, .runtime_dir = session->daemon->runtime_dir()}));
  HB_ASSIGN_OR_RETURN(session->device, MinimalDevice::Create(session->client->devices().front()));
  HB_ASSIGN_OR_RETURN(session->importer, VulkanImporter::Create(session->device->context()));
  return session;
}

}  // namespace heapbroker
