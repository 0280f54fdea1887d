// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Uses every part of the library, so that all of it has to link; runs where there
// is no daemon, and expects to be told so.
#include <heapbroker/checksum.h>
#include <heapbroker/client.h>
#include <heapbroker/memory_manager.h>
#include <heapbroker/memory_refusal.h>
#include <heapbroker/memory_watch.h>
#include <heapbroker/vulkan_importer.h>

#include <iostream>

namespace {

absl::Status Run(heapbroker::Client& client) {
  auto watch = client.Watch({});
  if (!watch.ok()) return watch.status();
  (*watch)->ReportIdle({});
  auto device = heapbroker::MinimalDevice::Create(client.devices()[0]);
  if (!device.ok()) return device.status();
  auto importer = heapbroker::VulkanImporter::Create((*device)->context());
  if (!importer.ok()) return importer.status();
  return heapbroker::MemoryManager::Create(client, **importer,
                                           {.runtime = {.size = heapbroker::MiB(1)}})
      .status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::cout << heapbroker::FormatBytes(heapbroker::KiB(64)) << " "
            << heapbroker::ChecksumOf(argv[1], heapbroker::Bytes(1)).low << "\n";
  auto client = heapbroker::Client::Connect({.runtime_dir = argv[1]});
  const absl::Status status = client.ok() ? Run(**client) : client.status();
  std::cout << status << (heapbroker::RefusalOf(status) ? " (refused)\n" : "\n");
  return absl::IsNotFound(status) ? 0 : 1;
}
