// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Memory between two processes that share nothing but a socket: as the daemon
// exports it, as a client imports it. The test itself never touches Vulkan, whose
// drivers do not survive a fork; each side is a child that opens its own device.

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/posix/packet.h"
#include "daemon/vulkan/device.h"
#include "daemon/vulkan/vulkan_memory.h"
#include "gtest/gtest.h"
#include "tests/contract/importing_device.h"

namespace heapbroker {
namespace {

// For a hang only; an emulated machine is slow.
constexpr unsigned kSecondsToLive = 240;

class ReceivedHandle final : public ExportedHandle {
 public:
  explicit ReceivedHandle(UniqueFd fd) : fd_(std::move(fd)) {}
  int fd() const override { return fd_.get(); }

 private:
  const UniqueFd fd_;
};

struct Announcement {
  BlockClass block_class;
  uint64_t allocation_size = 0;
};

uint8_t Pattern(size_t i, uint8_t seed) { return static_cast<uint8_t>(i * 7 + i / 4093 + seed); }

// Bytes of every page and the last one; all of them would take an emulated machine
// a minute.
template <typename Visit>
void ForSomeBytes(size_t size, Visit visit) {
  constexpr size_t kStride = 251;
  for (size_t i = 0; i < size; i += kStride) visit(i);
  if (size > 0) visit(size - 1);
}

void Write(absl::Span<uint8_t> bytes, uint8_t seed) {
  ForSomeBytes(bytes.size(), [&](size_t i) { bytes[i] = Pattern(i, seed); });
}

absl::Status Check(absl::Span<const uint8_t> bytes, uint8_t seed) {
  absl::Status status;
  ForSomeBytes(bytes.size(), [&](size_t i) {
    if (bytes[i] == Pattern(i, seed)) return;
    status.Update(
        absl::DataLossError(absl::StrCat("byte ", i, " of ", bytes.size(), " is ", bytes[i])));
  });
  return status;
}

absl::StatusOr<ReceivedPacket> Receive(const UniqueFd& socket, void* to, size_t size) {
  HB_ASSIGN_OR_RETURN(ReceivedPacket packet,
                      ReceivePacket(socket, absl::MakeSpan(static_cast<char*>(to), size), 1));
  if (packet.kind != ReceivedPacket::Kind::kMessage || packet.size != size) {
    return absl::UnavailableError("the other process has ended, or says something else");
  }
  return packet;
}

absl::Status ExportTo(const UniqueFd& socket, HandleType handle_type, Bytes size) {
  HB_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(DeviceSelector{}));
  const DeviceInfo& info = opened.device.info();
  Announcement told;
  told.block_class.handle_type = handle_type;
  told.block_class.dedicated = info.dedicated_only.has(handle_type);
  while (told.block_class.memory_type < info.memory_types.size()) {
    const MemoryTypeInfo& type = info.memory_types[told.block_class.memory_type];
    if (type.exportable.has(handle_type) && type.host_visible && type.host_coherent) break;
    ++told.block_class.memory_type;
  }
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<VulkanMemory> memory,
                      VulkanMemory::Create(opened.device, {}));
  HB_ASSIGN_OR_RETURN(const Bytes required, memory->RequiredSize(told.block_class, size));
  HB_ASSIGN_OR_RETURN(const DeviceAllocation block, memory->Allocate(told.block_class, required));
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<ImportingDevice> own, ImportingDevice::Open(info));
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<ImportedMemory> view,
                      own->Import(told.block_class, required, *block.exported));
  Write(view->bytes(), 1);
  told.allocation_size = required.count();
  HB_RETURN_IF_ERROR(SendPacket(socket, {reinterpret_cast<const char*>(&told), sizeof(told)},
                                {block.exported->fd()})
                         .status());
  char answer = 0;
  HB_RETURN_IF_ERROR(Receive(socket, &answer, 1).status());
  return Check(view->bytes(), 2);
}

absl::Status ImportFrom(const UniqueFd& socket) {
  Announcement told;
  HB_ASSIGN_OR_RETURN(ReceivedPacket packet, Receive(socket, &told, sizeof(told)));
  if (packet.descriptors.size() != 1) return absl::InternalError("no descriptor came");
  const ReceivedHandle handle(std::move(packet.descriptors.front()));
  HB_ASSIGN_OR_RETURN(const OpenedDevice opened, OpenDevice(DeviceSelector{}));
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<ImportingDevice> device,
                      ImportingDevice::Open(opened.device.info()));
  HB_ASSIGN_OR_RETURN(const std::unique_ptr<ImportedMemory> memory,
                      device->Import(told.block_class, Bytes(told.allocation_size), handle));
  HB_RETURN_IF_ERROR(Check(memory->bytes(), 1));
  Write(memory->bytes(), 2);
  return SendPacket(socket, "w").status();
}

pid_t Start(const char* name, const std::function<absl::Status()>& side) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  alarm(kSecondsToLive);
  const absl::Status status = side();
  if (!status.ok()) std::fprintf(stderr, "%s: %s\n", name, status.ToString().c_str());
  std::fflush(stderr);
  _exit(status.ok() ? 0 : 1);
}

class TwoProcessesTest : public testing::TestWithParam<uint64_t> {};

TEST_P(TwoProcessesTest, EachReadsWhatTheOtherWrote) {
  // As in device_under_test.h.
  const char* const expected = std::getenv("HEAPBROKER_TEST_HANDLE_TYPES");
  const HandleType handle_type = expected != nullptr && std::strcmp(expected, "dma_buf") == 0
                                     ? HandleType::kDmaBuf
                                     : HandleType::kOpaqueFd;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  UniqueFd one(ends[0]), other(ends[1]);
  // Each keeps its own end only, so that the other's end is seen.
  const pid_t exporter = Start("exporter", [&] {
    other.Reset();
    return ExportTo(one, handle_type, Bytes(GetParam()));
  });
  const pid_t importer = Start("importer", [&] {
    one.Reset();
    return ImportFrom(other);
  });
  one.Reset();
  other.Reset();
  for (pid_t pid : {exporter, importer}) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << (pid == exporter ? "exporter" : "importer") << " ended with " << status;
  }
}

// The last is more than what udmabuf gives unless it is told to.
INSTANTIATE_TEST_SUITE_P(Sizes, TwoProcessesTest,
                         testing::Values(1000003, MiB(1).count(), MiB(96).count()));

}  // namespace
}  // namespace heapbroker
