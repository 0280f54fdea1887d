// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
// Writes deploy/traces/models.trace: see deploy/traces/README.md.
#include <cstdint>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/trace/traces.h"

namespace heapbroker {
namespace {

struct Model {
  const char* name;
  std::vector<Bytes> sizes;  // Of its allocations, in their order.
};

std::vector<Bytes> Times(size_t n, Bytes size) { return std::vector<Bytes>(n, size); }

std::vector<Bytes> Join(const std::vector<std::vector<Bytes>>& parts) {
  std::vector<Bytes> all;
  for (const std::vector<Bytes>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// How many allocations, how much in all and how large the largest is, was measured;
// ncnn takes blocks of 16 and of 8 MiB. The rest of the sizes is made to fit that.
std::vector<Model> Models() {
  return {
      {"squeezenet, ncnn: 6 allocations, 25 MiB",
       Join({Times(1, MiB(16)), Times(1, MiB(8)), Times(4, KiB(256))})},
      {"resnet18, ncnn: 16 allocations, 135 MiB",
       Join({Times(7, MiB(16)), Times(2, MiB(8)), Times(7, MiB(1))})},
      {"vgg16, ncnn: 26 allocations, 472 MiB, the largest 196",
       Join({Times(1, MiB(196)), Times(16, MiB(16)), Times(2, MiB(8)), Times(6, KiB(512)),
             Times(1, MiB(1))})},
      {"ViT, ncnn: 29 allocations, 218 MiB",
       Join({Times(12, MiB(16)), Times(3, MiB(8)), Times(12, KiB(128)), Times(2, KiB(256))})},
      {"llama of 45 M parameters, llama.cpp: 11 allocations, 86 MiB, one of 82",
       Join({Times(1, MiB(82)), Times(8, KiB(256)), Times(2, MiB(1))})},
  };
}

// A process that loads a model, answers a few requests, each with inputs and
// results of its own size, and gives everything back.
void RunProcess(TracedBroker& broker, const Model& model, SessionId session, TenantId tenant,
                std::mt19937& random) {
  broker.AddSession(session, tenant);
  std::vector<CallId> calls;
  for (const Bytes size : model.sizes) {
    calls.push_back(broker.Allocate(session, {size}));
    broker.RunAll();
    broker.Advance(absl::Microseconds(300));
  }
  for (int request = 0; request < 6; ++request) {
    // Images of 224 x 224 in three channels of float, one to eight at a time.
    const Bytes input(uint64_t{224} * 224 * 3 * 4 * (1 + random() % 8));
    const CallId call = broker.Allocate(session, {input});
    broker.RunAll();
    broker.Advance(absl::Milliseconds(20));
    if (const CallAnswered* answer = broker.Answer(call)) broker.Release(session, answer->blocks);
  }
  for (const CallId call : calls) {
    const CallAnswered* const answer = broker.Answer(call);
    if (answer != nullptr && !answer->blocks.empty()) broker.Release(session, answer->blocks);
  }
  broker.EndSession(session);
  broker.RunAll();
  broker.Advance(absl::Seconds(20));
}

int Main(const std::string& path) {
  TracedDevice device = TracedDeviceOf(MiB(900));
  device.options.admission.pools = {{"type 0", 0, true, false, {}}};
  TraceStart start = StartOf({device});
  start.daemon_version = "0.1.0";
  start.comment =
      "Made by tests/unit/trace/make_example_trace.cc: processes that come one after the other, "
      "with the sizes of five programs; on the simulated device, whose allocations take 50 us.";
  TracedBroker broker(device);
  std::mt19937 random(1);
  const std::vector<Model> models = Models();
  for (uint32_t run = 1; run <= 40; ++run) {
    RunProcess(broker, models[random() % models.size()], SessionId(run),
               random() % 4 == 0 ? kBob : kAlice, random);
  }
  // Without statistics of the end: these are a matter of the core's version, and the
  // example is to outlive it.
  WriteTrace(path, start, broker.turns(), {});
  return 0;
}

}  // namespace
}  // namespace heapbroker

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "make_example_trace FILE\n";
    return 2;
  }
  return heapbroker::Main(argv[1]);
}
