// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

#include "tests/unit/session/test_core.h"

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/posix/unique_fd.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

class MemoryFile final : public ExportedHandle {
 public:
  explicit MemoryFile(Bytes size) : fd_(memfd_create("block", MFD_CLOEXEC)) {
    const std::string text = absl::StrCat(size.count());
    EXPECT_EQ(pwrite(fd_.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  int fd() const override { return fd_.get(); }

 private:
  const UniqueFd fd_;
};

std::shared_ptr<const ExportedHandle> MakeFile(Bytes size) {
  return std::make_shared<MemoryFile>(size);
}

DeviceInfo SecondDeviceInfo() {
  DeviceInfo info = SimulatedDeviceInfo();
  info.index = 1;
  info.name = "second device";
  return info;
}

LedgerOptions Options(TenantRule tenants) {
  LedgerOptions options;
  options.admission.heaps = {{GiB(1)}};
  options.admission.count_limits = {{LimitKind::kMaxAllocationCount, 1000}};
  options.tenants = tenants;
  return options;
}

}  // namespace

void GrantCollector::Deliver(SessionId, Event event) {
  const auto* done = std::get_if<AllocateDone>(&event);
  if (done == nullptr) return;
  MutexLock lock(mutex_);
  grants_.emplace(done->call, done->grant);
}

absl::StatusOr<Grant> GrantCollector::Take(CallId call) {
  MutexLock lock(mutex_);
  const auto found = grants_.find(call);
  if (found == grants_.end()) return absl::NotFoundError("no such grant");
  return std::move(grants_.extract(found).mapped());
}

TestCore::TestCore(TenantRule tenants)
    : device(SimulatedDeviceInfo(), MakeFile),
      second_device(SecondDeviceInfo(), MakeFile),
      broker(Options(tenants), {device, executor, grants, clock, alarm}),
      second_broker(Options(TenantRule::kAnyTenant),
                    {second_device, executor, grants, clock, alarm}) {}

BlockId TestCore::Lease(DeviceBroker& from, SessionId session, Bytes size) {
  const CallId call(++last_call);
  const BlockRequest request{.size = size, .alignment = Bytes()};
  absl::StatusOr<std::variant<Grant, Deferred>> outcome =
      from.Allocate(session, call, {.blocks = {request}});
  EXPECT_TRUE(outcome.ok()) << outcome.status();
  if (!outcome.ok()) return BlockId();
  if (const Grant* grant = std::get_if<Grant>(&*outcome)) return grant->blocks.front().id;
  const absl::StatusOr<Grant> grant = grants.Take(call);
  EXPECT_TRUE(grant.ok()) << grant.status();
  return grant.ok() ? grant->blocks.front().id : BlockId();
}

}  // namespace heapbroker
