// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Classifies handwritten digits in brokered memory. The way through it is Run():
// read the files, connect, open the device, provide the weights, run the model.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/examples/digits/classifier.h"
#include "client/examples/digits/dataset.h"
#include "client/examples/digits/linear_pipeline.h"
#include "client/examples/digits/model.h"
#include "client/examples/digits/options.h"
#include "client/examples/digits/weights.h"
#include "heapbroker/client.h"
#include "heapbroker/memory_manager.h"
#include "heapbroker/units.h"
#include "heapbroker/vulkan_importer.h"

namespace digits {
namespace {

// What a step took, and what there is to say about it.
struct Step {
  const char* name;
  absl::Duration time;
  std::string detail;
};

// All that the steps make, in this order; it goes in the opposite one, the
// session last.
struct Session {
  std::shared_ptr<heapbroker::Client> client;
  std::unique_ptr<heapbroker::MinimalDevice> device;
  std::unique_ptr<heapbroker::VulkanImporter> importer;
  std::unique_ptr<heapbroker::MemoryManager> memory;
  std::unique_ptr<LinearPipeline> pipeline;
  std::unique_ptr<Classifier> classifier;
  VkPhysicalDeviceLimits limits{};
  uint32_t batch = 0;
};

absl::Status WithContext(absl::string_view context, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

absl::Status CheckFit(const Options& options, const Model& model, const Dataset& dataset) {
  if (dataset.pixels_per_image != model.inputs()) {
    return absl::InvalidArgumentError(absl::StrCat(options.images, " has images of ",
                                                   dataset.pixels_per_image, " pixels, but ",
                                                   options.model, " takes ", model.inputs()));
  }
  for (size_t i = 0; i < dataset.labels.size(); ++i) {
    if (dataset.labels[i] < model.outputs()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(options.labels, ": label ", i, " is ", dataset.labels[i], ", but ",
                     options.model, " tells only 0 to ", model.outputs() - 1, " apart"));
  }
  return absl::OkStatus();
}

absl::Status Connect(const Options& options, Session& session, Step& step) {
  heapbroker::ClientOptions client_options;
  client_options.name = options.name;
  client_options.runtime_dir = options.runtime_dir;
  absl::StatusOr<std::shared_ptr<heapbroker::Client>> client =
      heapbroker::Client::Connect(client_options);
  if (!client.ok()) return WithContext("cannot connect to heapbrokerd", client.status());
  session.client = *std::move(client);
  if (session.client->devices().empty()) {
    return absl::FailedPreconditionError("heapbrokerd has no device");
  }
  step.detail = absl::StrCat("session ", session.client->session_id());
  return absl::OkStatus();
}

absl::Status OpenDevice(const Model& model, const Dataset& dataset, Session& session, Step& step) {
  const heapbroker::BrokerDevice& broker_device = session.client->devices().front();
  absl::StatusOr<std::unique_ptr<heapbroker::MinimalDevice>> device =
      heapbroker::MinimalDevice::Create(broker_device);
  if (!device.ok()) return WithContext("cannot open the daemon's device", device.status());
  session.device = *std::move(device);
  const heapbroker::VulkanContext& context = session.device->context();

  absl::StatusOr<std::unique_ptr<heapbroker::VulkanImporter>> importer =
      heapbroker::VulkanImporter::Create(context);
  if (!importer.ok()) return importer.status();
  session.importer = *std::move(importer);

  VkPhysicalDeviceProperties properties;
  vkGetPhysicalDeviceProperties(context.physical_device, &properties);
  session.limits = properties.limits;
  session.batch = ChooseBatch(model, dataset.image_count, session.limits);
  absl::StatusOr<std::unique_ptr<LinearPipeline>> pipeline = LinearPipeline::Create(
      context.device, session.limits, static_cast<uint32_t>(model.layers().size()));
  if (!pipeline.ok()) return pipeline.status();
  session.pipeline = *std::move(pipeline);
  step.detail = broker_device.name;
  return absl::OkStatus();
}

absl::Status ProvideMemory(const Options& options, const Model& model, Session& session,
                           Step& step) {
  const absl::StatusOr<heapbroker::Checksum> checksum = WeightsChecksum(model);
  if (!checksum.ok()) return checksum.status();
  heapbroker::MemoryPlan plan = PlanMemory(model, session.batch);
  plan.constant.name = options.segment.empty() ? SegmentName(*checksum) : options.segment;
  const std::string segment = absl::StrCat("segment \"", plan.constant.name, "\"");

  absl::StatusOr<std::unique_ptr<heapbroker::MemoryManager>> memory =
      heapbroker::MemoryManager::Create(*session.client, *session.importer, plan);
  if (!memory.ok()) {
    return WithContext(absl::StrCat("cannot get the memory that the model and ", segment, " need"),
                       memory.status());
  }
  session.memory = *std::move(memory);
  const absl::StatusOr<WeightsOrigin> origin =
      ProvideWeights(model, *checksum, *session.memory->get_constant_allocator());
  if (!origin.ok()) return WithContext(segment, origin.status());

  absl::StatusOr<std::unique_ptr<Classifier>> classifier =
      Classifier::Create({.model = model,
                          .importer = *session.importer,
                          .memory = *session.memory,
                          .pipeline = *session.pipeline,
                          .batch = session.batch});
  if (!classifier.ok()) return classifier.status();
  session.classifier = *std::move(classifier);
  step.detail = absl::StrCat(*origin == WeightsOrigin::kLoaded ? "loaded" : "attached", ", ",
                             heapbroker::FormatBytes(plan.constant.size), " in ", segment);
  return absl::OkStatus();
}

// Returns when `limit` has passed, or, if that is never, when standard input ends.
absl::Status Hold(absl::Duration limit) {
  if (limit != absl::InfiniteDuration()) {
    absl::SleepFor(limit);
    return absl::OkStatus();
  }
  std::array<char, 4096> ignored;
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, ignored.data(), ignored.size());
    if (got == 0) return absl::OkStatus();
    if (got < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "cannot read standard input");
  }
}

void Print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);  // Somebody may wait for it while the memory is held.
}

void PrintStep(const Step& step) {
  Print(absl::StrFormat("%-9s %10.2f ms  %s\n", step.name, absl::ToDoubleMilliseconds(step.time),
                        step.detail));
}

// Runs one step and says how long it took, in the order in which they happen.
template <typename Function>
absl::Status Timed(const char* name, Function function) {
  Step step{.name = name, .time = {}, .detail = {}};
  const absl::Time start = absl::Now();
  if (absl::Status status = function(step); !status.ok()) return status;
  step.time = absl::Now() - start;
  PrintStep(step);
  return absl::OkStatus();
}

absl::Status Classify(const Dataset& dataset, Session& session, uint32_t& correct, Step& step) {
  const absl::StatusOr<std::vector<uint32_t>> answers =
      session.classifier->Classify(dataset.pixels);
  if (!answers.ok()) return WithContext("cannot run the model", answers.status());
  for (size_t i = 0; i < answers->size(); ++i) correct += (*answers)[i] == dataset.labels[i];
  step.detail = absl::StrCat(dataset.image_count, " images, ", session.batch, " at a time");
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  const absl::StatusOr<Model> model = Model::Open(options.model);
  if (!model.ok()) return model.status();
  const absl::StatusOr<Dataset> dataset = LoadDataset(options.images, options.labels);
  if (!dataset.ok()) return dataset.status();
  if (absl::Status fit = CheckFit(options, *model, *dataset); !fit.ok()) return fit;

  Session session;
  uint32_t correct = 0;
  absl::Status status =
      Timed("connect", [&](Step& step) { return Connect(options, session, step); });
  if (!status.ok()) return status;
  status = Timed("device", [&](Step& step) { return OpenDevice(*model, *dataset, session, step); });
  if (!status.ok()) return status;
  status =
      Timed("weights", [&](Step& step) { return ProvideMemory(options, *model, session, step); });
  if (!status.ok()) return status;
  status =
      Timed("inference", [&](Step& step) { return Classify(*dataset, session, correct, step); });
  if (!status.ok()) return status;
  Print(absl::StrCat(correct, " of ", dataset->image_count, " correct\n"));
  if (options.hold) {
    Print("holding the memory\n");
    return Hold(*options.hold);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  const absl::StatusOr<digits::Options> options =
      digits::ParseOptions(std::vector<std::string>(argv + 1, argv + argc));
  if (!options.ok()) {
    absl::FPrintF(stderr, "digits: %s. `digits --help` lists the flags.\n",
                  options.status().message());
    return 2;
  }
  if (options->help) {
    absl::FPrintF(stdout, "%s", digits::Usage());
    return 0;
  }
  if (const absl::Status status = digits::Run(*options); !status.ok()) {
    absl::FPrintF(stderr, "digits: %s.\n", status.message());
    return 1;
  }
  return 0;
}
