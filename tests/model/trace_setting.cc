// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/model/trace_setting.h"

#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/core/pool_spec.h"
#include "daemon/core/simulated_device.h"

namespace heapbroker {
namespace {

constexpr const char* kPools[] = {
    "",
    "unbounded",
    "*=1mib;*;3,*=8mib;24mib;2",
    "device_local=2mib;8mib;4,device_local=*;32mib;1,*",
    "device_local=100mib;*;10",
    "*=*;*;0",
    "*=4mib;16mib;*",
    "device_local|transient=*;8mib;2,*=4mib;32mib;8",
    "host_visible=1mib;3mib;16,device_local=64kib;1mib;64,*=16mib;*;5",
};
constexpr uint64_t kCounts[] = {8, 20, 40, 60, 4000};
constexpr LimitKind kCountKinds[] = {LimitKind::kMaxAllocationCount, LimitKind::kDescriptors,
                                     LimitKind::kMemoryMaps};
constexpr Bytes kBudgets[] = {MiB(24), MiB(48), MiB(96), Bytes(50000001)};
constexpr Bytes kLargest[] = {MiB(6), MiB(16), MiB(64)};
constexpr std::pair<Bytes, Bytes> kPaddings[] = {{Bytes(1), Bytes()},  {KiB(4), Bytes()},
                                                 {KiB(64), Bytes()},   {KiB(4), Bytes(64)},
                                                 {KiB(64), Bytes(64)}, {Bytes(1), Bytes(64)}};

class Dice {
 public:
  explicit Dice(std::mt19937& random) : random_(random) {}
  uint32_t operator()(uint32_t below) {
    return std::uniform_int_distribution<uint32_t>(0, below - 1)(random_);
  }
  template <typename T, size_t N>
  const T& Of(const T (&choices)[N]) {
    return choices[(*this)(N)];
  }

 private:
  std::mt19937& random_;
};

MemoryTypeInfo Type(uint32_t heap, bool device_local, bool host_visible, bool host_cached) {
  MemoryTypeInfo type;
  type.heap = heap;
  type.device_local = device_local;
  type.host_visible = type.host_coherent = host_visible;
  type.host_cached = host_cached;
  type.exportable = {.opaque_fd = true, .dma_buf = !host_cached};
  return type;
}

// Software, discrete, or discrete with a small window for the host.
DeviceInfo DrawDevice(Dice& dice) {
  DeviceInfo device = SimulatedDeviceInfo();
  device.index = dice(3);
  device.device_addresses = true;
  device.max_allocation_size = dice.Of(kLargest);
  const uint32_t shape = dice(4);
  if (shape == 0) return device;
  device.heaps = {{GiB(1), true}, {GiB(1), false}};
  device.memory_types = {Type(0, true, false, false), Type(1, false, true, false),
                         Type(1, false, true, true)};
  if (shape == 1) return device;
  uint32_t window = 0;
  if (shape == 2) {
    window = 2;
    device.heaps.push_back({MiB(256), true});
  }
  device.memory_types.push_back(Type(window, true, true, false));
  return device;
}

}  // namespace

TraceSetting DrawSetting(std::mt19937& random) {
  Dice dice(random);
  TraceSetting setting;
  setting.device = DrawDevice(dice);
  AdmissionOptions& options = setting.options.admission;
  for (size_t i = 0; i < setting.device.heaps.size(); ++i) {
    HeapLimit limit{dice.Of(kBudgets)};
    if (dice(2) == 0) limit.driver_per_mille = 900;
    options.heaps.push_back(limit);
  }
  options.count_limits = {{dice.Of(kCountKinds), dice.Of(kCounts)},
                          {LimitKind::kMaxAllocationCount, 4000}};
  const char* const pools = dice.Of(kPools);
  const auto specs = ParsePoolValues({pools});
  if (specs.ok()) options.pools = ResolvePools(*specs, setting.device).pools;
  options.matching.matching = dice(3) == 0 ? Matching::kExact : Matching::kBestFit;
  options.matching.slack_per_mille = dice(2) == 0 ? 125 : dice(1000);
  options.idle_ttl = absl::Seconds(dice(3) * 5);
  std::tie(setting.granularity, setting.extra) = dice.Of(kPaddings);
  setting.text = absl::StrCat(
      setting.device.heaps.size(), " heaps, ", setting.device.memory_types.size(),
      " memory types, pools \"", pools, "\", ",
      options.matching.matching == Matching::kExact ? "exact" : "best_fit", ", at most ",
      options.count_limits.front().blocks, " allocations, sizes padded to ",
      setting.granularity.count(), " and by ", setting.extra.count(), " bytes");
  return setting;
}

}  // namespace heapbroker
