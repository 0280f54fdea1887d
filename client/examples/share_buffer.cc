// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// One buffer for two processes: run it twice, with a daemon.
//
//   share_buffer 'some words'   the first to come writes them, and waits for Enter
//   share_buffer                those after it find them, as long as one is there
#include <cstring>
#include <iostream>
#include <string>

#include "heapbroker/checksum.h"
#include "heapbroker/client.h"
#include "heapbroker/vulkan_importer.h"

namespace {

using heapbroker::DeviceBuffer;
using heapbroker::Segment;

constexpr heapbroker::Bytes kSize = heapbroker::KiB(4);

// The buffer's bytes end with zeros. A device that is to read them must be given the
// buffer first: VulkanImporter::ReleaseAll here, AcquireAll in the process that reads.
absl::Status Write(const std::string& words, const DeviceBuffer& buffer, Segment& segment) {
  if (words.size() >= kSize.count()) return absl::InvalidArgumentError("too many words");
  std::memset(buffer.mapped(), 0, kSize.count());
  std::memcpy(buffer.mapped(), words.data(), words.size());
  if (absl::Status status = buffer.Flush({}, kSize); !status.ok()) return status;
  // All who wait for the segment are let in now, and nobody may write to it any more.
  return segment.Seal(heapbroker::ChecksumOf(buffer.mapped(), kSize));
}

// Nothing keeps the other process from writing after it sealed; a checksum tells.
absl::Status Read(const DeviceBuffer& buffer, const Segment& segment, std::string& words) {
  if (absl::Status status = buffer.Invalidate({}, kSize); !status.ok()) return status;
  words.assign(static_cast<const char*>(buffer.mapped()), kSize.count());
  if (heapbroker::ChecksumOf(words.data(), kSize) != segment.checksum()) {
    return absl::DataLossError("the contents are not those that were sealed");
  }
  words.resize(words.find('\0'));
  return absl::OkStatus();
}

absl::Status Run(const std::string& words) {
  auto client = heapbroker::Client::Connect({.name = "share_buffer"});
  if (!client.ok()) return client.status();
  auto device = heapbroker::MinimalDevice::Create((*client)->devices().front());
  if (!device.ok()) return device.status();
  auto importer = heapbroker::VulkanImporter::Create((*device)->context());
  if (!importer.ok()) return importer.status();

  auto segment = (*client)->OpenSegment({.name = "share_buffer example",
                                         .size = kSize,
                                         .memory = heapbroker::MemoryKind::kHostVisible});
  if (!segment.ok()) return segment.status();
  auto buffer = (*importer)->Import(*segment->blocks().front(), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
  if (!buffer.ok()) return buffer.status();

  if (!segment->is_writer()) {
    std::string found;
    const absl::Status status = Read(*buffer, *segment, found);
    if (status.ok()) std::cout << "found: " << found << std::endl;
    return status;
  }
  if (absl::Status status = Write(words, *buffer, *segment); !status.ok()) return status;
  std::cout << "wrote: " << words << std::endl;
  std::cin.get();
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Run(argc > 1 ? argv[1] : "");
  if (!status.ok()) std::cerr << "share_buffer: " << status << "\n";
  return status.ok() ? 0 : 1;
}
