// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/app/device_watch.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heapbroker {
namespace {

using testing::ElementsAre;

class RecordingLogger final : public Logger {
 public:
  void Write(LogLevel level, absl::string_view message) override {
    MutexLock lock(mutex_);
    if (level == LogLevel::kWarning) lines_.emplace_back(message);
  }
  std::vector<std::string> lines() {
    MutexLock lock(mutex_);
    return lines_;
  }

 private:
  Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

TEST(DeviceWatchTest, WarnsInTheDevicesName) {
  RecordingLogger logger;
  DeviceWatch(3, logger, nullptr).OnWarning("it is hot");
  EXPECT_THAT(logger.lines(), ElementsAre("device 3: it is hot"));
}

// Each another one, as for requests of falling sizes that the driver refuses.
TEST(DeviceWatchTest, AThousandWarningsAreAFewLines) {
  RecordingLogger logger;
  DeviceWatch watch(0, logger, nullptr);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int size = 1000; size > 750; --size) watch.OnWarning(absl::StrCat("no ", size));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(logger.lines().size(), 10u);
  EXPECT_LE(logger.lines().size(), 40u);
}

TEST(DeviceWatchTest, OneDevicesWarningsDoNotSilenceAnothers) {
  RecordingLogger logger;
  DeviceWatch one(0, logger, nullptr);
  DeviceWatch other(1, logger, nullptr);
  for (int i = 0; i < 1000; ++i) one.OnWarning("no");
  other.OnWarning("it is hot");
  EXPECT_EQ(logger.lines().back(), "device 1: it is hot");
}

}  // namespace
}  // namespace heapbroker
