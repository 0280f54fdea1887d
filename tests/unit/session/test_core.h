// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// A core on a simulated device, for tests of the session edge.
#ifndef TESTS_UNIT_SESSION_TEST_CORE_H_
#define TESTS_UNIT_SESSION_TEST_CORE_H_

#include <atomic>
#include <map>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/posix/logging.h"
#include "daemon/core/device_broker.h"
#include "daemon/core/device_executor.h"
#include "daemon/core/event_sink.h"
#include "daemon/core/sessions.h"
#include "daemon/core/simulated_device.h"
#include "tests/fakes/fake_alarm.h"

namespace heapbroker {

// Runs jobs where they are posted.
class InlineExecutor final : public DeviceExecutor {
 public:
  void PostAllocation(DeviceJob job) override { std::move(job)(); }
  void PostFree(DeviceJob job) override { std::move(job)(); }
};

class GrantCollector final : public EventSink {
 public:
  void Deliver(SessionId session, Event event) override;
  absl::StatusOr<Grant> Take(CallId call);

 private:
  Mutex mutex_;
  std::map<CallId, absl::StatusOr<Grant>> grants_ ABSL_GUARDED_BY(mutex_);
};

// Counts what is logged.
class CountingLogger final : public Logger {
 public:
  void Write(LogLevel, absl::string_view) override { ++count_; }
  int count() const { return count_; }

 private:
  std::atomic<int> count_ = 0;
};

// Everything that the session edge needs. The device's descriptors are files in
// memory that begin with their allocation's size in bytes, in decimal.
struct TestCore {
  // `tenants` is the rule of the first device; the second serves anyone.
  explicit TestCore(TenantRule tenants = TenantRule::kAnyTenant);

  // Leases a new block to a session that is open, of the first device unless
  // another one is named.
  BlockId Lease(SessionId session, Bytes size = KiB(64)) { return Lease(broker, session, size); }
  BlockId Lease(DeviceBroker& from, SessionId session, Bytes size);
  // Allocations that the device still has.
  size_t live_allocations() const { return device.counts().live; }

  Sessions sessions{clock};
  SimulatedDevice device;
  SimulatedDevice second_device;
  RealClock clock;
  FakeAlarm alarm;
  InlineExecutor executor;
  GrantCollector grants;
  DeviceBroker broker;
  DeviceBroker second_broker;
  CountingLogger logger;
  uint64_t last_call = 0;
};

}  // namespace heapbroker
#endif  // TESTS_UNIT_SESSION_TEST_CORE_H_
