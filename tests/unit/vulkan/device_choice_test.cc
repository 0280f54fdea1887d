// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0
#include "daemon/vulkan/device_choice.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/vulkan/snapshots.h"

namespace heapbroker {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr VkPhysicalDeviceType kDiscrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
constexpr VkPhysicalDeviceType kIntegrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
constexpr VkPhysicalDeviceType kVirtual = VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU;
constexpr VkPhysicalDeviceType kOther = VK_PHYSICAL_DEVICE_TYPE_OTHER;
constexpr VkPhysicalDeviceType kCpu = VK_PHYSICAL_DEVICE_TYPE_CPU;

DeviceSnapshot Unusable(DeviceSnapshot device) {
  device.extensions.clear();
  return device;
}

// The usual laptop, its software device first.
std::vector<DeviceSnapshot> ThreeDevices() {
  return {MakeSnapshot("llvmpipe (LLVM 15.0.6, 256 bits)", kCpu, 1),
          MakeSnapshot("Intel(R) Iris(R) Xe Graphics", kIntegrated, 2),
          MakeSnapshot("NVIDIA GeForce RTX 4070", kDiscrete, 3)};
}

size_t Chosen(const std::vector<DeviceSnapshot>& devices, const std::string& text) {
  const absl::StatusOr<DeviceChoice> choice = ChooseDevice(devices, {.text = text});
  EXPECT_TRUE(choice.ok()) << choice.status();
  return choice.ok() ? choice->index : devices.size();
}

absl::Status Refusal(const std::vector<DeviceSnapshot>& devices, const DeviceSelector& selector) {
  const absl::StatusOr<DeviceChoice> choice = ChooseDevice(devices, selector);
  EXPECT_FALSE(choice.ok()) << "chose device " << choice->index;
  return choice.status();
}

TEST(DeviceChoiceTest, RanksTypes) {
  const std::vector<VkPhysicalDeviceType> best_first = {kDiscrete, kIntegrated, kVirtual, kOther,
                                                        kCpu};
  for (size_t better = 0; better < best_first.size(); ++better) {
    for (size_t worse = better + 1; worse < best_first.size(); ++worse) {
      const DeviceSnapshot a = MakeSnapshot("a", best_first[better], 1);
      const DeviceSnapshot b = MakeSnapshot("b", best_first[worse], 2);
      EXPECT_EQ(Chosen({a, b}, ""), 0U) << better << " before " << worse;
      EXPECT_EQ(Chosen({b, a}, ""), 1U) << better << " before " << worse;
    }
  }
}

TEST(DeviceChoiceTest, TakesTheLoadersFirstAmongEquals) {
  EXPECT_EQ(Chosen({MakeSnapshot("a", kCpu, 1), MakeSnapshot("b", kDiscrete, 2),
                    MakeSnapshot("c", kDiscrete, 3)},
                   ""),
            1U);
}

TEST(DeviceChoiceTest, PassesOverWhatIsNotUsable) {
  EXPECT_EQ(
      Chosen({Unusable(MakeSnapshot("a", kDiscrete, 1)), MakeSnapshot("b", kIntegrated, 2)}, ""),
      1U);
}

TEST(DeviceChoiceTest, HardwareNeedsNoWarning) {
  EXPECT_EQ(ChooseDevice(ThreeDevices(), {})->warning, "");
  EXPECT_EQ(ChooseDevice(ThreeDevices(), {.text = "Iris"})->warning, "");
}

TEST(DeviceChoiceTest, WarnsWhenNothingButSoftwareIsLeft) {
  const absl::StatusOr<DeviceChoice> choice = ChooseDevice({MakeSnapshot("llvmpipe", kCpu, 1)}, {});
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_THAT(choice->warning,
              AllOf(HasSubstr("'llvmpipe' is a software device"),
                    HasSubstr("no usable hardware device was found"), HasSubstr("/dev/dri")));
}

TEST(DeviceChoiceTest, TheWarningTellsWhyTheHardwareWasPassedOver) {
  const absl::StatusOr<DeviceChoice> choice = ChooseDevice(
      {MakeSnapshot("llvmpipe", kCpu, 1), Unusable(MakeSnapshot("Old GPU", kDiscrete, 2))}, {});
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->index, 0U);
  EXPECT_THAT(choice->warning,
              AllOf(HasSubstr("'Old GPU'"), HasSubstr("lacks the extension VK_KHR_external")));
}

TEST(DeviceChoiceTest, SaysThatANamedDeviceIsSoftwareButNotThatItIsAFallback) {
  for (const char* text : {"0", "llvmpipe", "abcd0000-0000-0000-0000-000000000001"}) {
    const absl::StatusOr<DeviceChoice> choice = ChooseDevice(ThreeDevices(), {.text = text});
    ASSERT_TRUE(choice.ok()) << choice.status();
    EXPECT_EQ(choice->index, 0U);
    EXPECT_THAT(choice->warning, AllOf(HasSubstr("is a software device, as was asked for"),
                                       Not(HasSubstr("no usable hardware"))));
  }
}

TEST(DeviceChoiceTest, TakesAnIndex) {
  EXPECT_EQ(Chosen(ThreeDevices(), "0"), 0U);
  EXPECT_EQ(Chosen(ThreeDevices(), "2"), 2U);
  EXPECT_EQ(Chosen(ThreeDevices(), "02"), 2U);
}

TEST(DeviceChoiceTest, TakesAWholeNameInEitherCase) {
  EXPECT_EQ(Chosen(ThreeDevices(), "nvidia geforce rtx 4070"), 2U);
  EXPECT_EQ(Chosen(ThreeDevices(), "  NVIDIA GeForce RTX 4070\n"), 2U);
}

TEST(DeviceChoiceTest, TakesAPartThatOnlyOneNameHas) {
  EXPECT_EQ(Chosen(ThreeDevices(), "geforce"), 2U);
  EXPECT_EQ(Chosen(ThreeDevices(), "IRIS"), 1U);
  EXPECT_EQ(Chosen(ThreeDevices(), "(LLVM"), 0U);
}

TEST(DeviceChoiceTest, AWholeNameGoesBeforeNamesThatContainIt) {
  EXPECT_EQ(Chosen({MakeSnapshot("Radeon Pro", kDiscrete, 1), MakeSnapshot("Radeon", kDiscrete, 2)},
                   "radeon"),
            1U);
}

TEST(DeviceChoiceTest, TakesAUuidInEitherForm) {
  EXPECT_EQ(Chosen(ThreeDevices(), "abcd0000000000000000000000000002"), 1U);
  EXPECT_EQ(Chosen(ThreeDevices(), "ABCD0000-0000-0000-0000-000000000003"), 2U);
}

TEST(DeviceChoiceTest, TakesAUuidOfDigitsOnlyForAUuid) {
  DeviceSnapshot device = MakeSnapshot("a", kDiscrete, 1);
  device.device_uuid.fill(0x11);
  EXPECT_EQ(Chosen({MakeSnapshot("b", kDiscrete, 2), device}, std::string(32, '1')), 1U);
}

TEST(DeviceChoiceTest, AnUnknownDeviceIsAnErrorThatListsTheKnown) {
  for (const char* text :
       {"3", "99999999999999999999", "-1", "Radeon", "0x1", "abcd0000-0000-0000-0000-000000000009",
        "abcd-00000000-0000-0000-000000000001"}) {
    const absl::Status status = Refusal(ThreeDevices(), {.text = text});
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << text;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(text), HasSubstr("an index, a UUID, a name"),
                      HasSubstr("2 = 'NVIDIA GeForce RTX 4070' (discrete GPU, UUID "
                                "abcd0000-0000-0000-0000-000000000003, driver UUID ef000000-")));
  }
}

TEST(DeviceChoiceTest, AnAmbiguousNameIsAnErrorThatTellsTheMatchesApart) {
  const std::vector<DeviceSnapshot> twins = {MakeSnapshot("RTX 4070", kDiscrete, 1),
                                             MakeSnapshot("llvmpipe", kCpu, 2),
                                             MakeSnapshot("RTX 4070", kDiscrete, 3)};
  for (const char* text : {"RTX 4070", "rtx"}) {
    const absl::Status status = Refusal(twins, {.text = text});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("means 2 devices: 0 = 'RTX 4070' (discrete GPU, UUID "
                                "abcd0000-0000-0000-0000-000000000001"),
                      HasSubstr("2 = 'RTX 4070' (discrete GPU, UUID "
                                "abcd0000-0000-0000-0000-000000000003"),
                      Not(HasSubstr("llvmpipe")), HasSubstr("by its index")));
  }
  EXPECT_EQ(Chosen(twins, "2"), 2U);
}

TEST(DeviceChoiceTest, AUuidThatTwoDevicesHaveIsAmbiguous) {
  const std::vector<DeviceSnapshot> twins = {MakeSnapshot("a", kCpu, 1),
                                             MakeSnapshot("b", kCpu, 1)};
  EXPECT_EQ(Refusal(twins, {.text = "abcd0000000000000000000000000001"}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(DeviceChoiceTest, ANamedDeviceThatIsNotUsableIsRefusedWithTheReason) {
  const absl::Status status =
      Refusal({Unusable(MakeSnapshot("Old GPU", kDiscrete, 1)), MakeSnapshot("b", kDiscrete, 2)},
              {.text = "old"});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'Old GPU' lacks the extension"), HasSubstr("1 = 'b'")));
}

TEST(DeviceChoiceTest, RequiredHardwareRefusesSoftwareHoweverItIsNamed) {
  for (const char* text : {"", "0", "llvmpipe"}) {
    const absl::Status status =
        Refusal({MakeSnapshot("llvmpipe", kCpu, 1)}, {.text = text, .require_hardware = true});
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("hardware"), HasSubstr("0 = 'llvmpipe' (software")));
  }
  const absl::StatusOr<DeviceChoice> choice =
      ChooseDevice(ThreeDevices(), {.text = "", .require_hardware = true});
  ASSERT_TRUE(choice.ok()) << choice.status();
  EXPECT_EQ(choice->index, 2U);
}

TEST(DeviceChoiceTest, NoDeviceAtAllIsAnErrorThatSaysWhatToCheck) {
  for (const char* text : {"", "0", "llvmpipe"}) {
    const absl::Status status = Refusal({}, {.text = text});
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr("mesa-vulkan-drivers"), HasSubstr("/dev/dri")));
  }
}

TEST(DeviceChoiceTest, NoUsableDeviceIsAnErrorThatGivesEachReason) {
  DeviceSnapshot old = MakeSnapshot("Old GPU", kDiscrete, 1);
  old.api_version = VK_API_VERSION_1_0;
  const absl::Status status = Refusal({old, Unusable(MakeSnapshot("b", kCpu, 2))}, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("has only Vulkan 1.0"), HasSubstr("lacks the extension")));
}

// The indexes that were chosen, or none with an error.
std::vector<size_t> ChosenOf(const std::vector<DeviceSnapshot>& devices,
                             const std::vector<std::string>& selectors) {
  const absl::StatusOr<std::vector<DeviceChoice>> choices =
      ChooseDevices(devices, selectors, /*require_hardware=*/false);
  EXPECT_TRUE(choices.ok()) << choices.status();
  std::vector<size_t> indexes;
  if (!choices.ok()) return indexes;
  for (const DeviceChoice& choice : *choices) indexes.push_back(choice.index);
  return indexes;
}

TEST(DevicesChoiceTest, WithoutSelectorsTakesAllUsableHardwareTheBestFirst) {
  std::vector<DeviceSnapshot> devices = ThreeDevices();
  devices.push_back(Unusable(MakeSnapshot("Old GPU", kDiscrete, 4)));
  devices.push_back(MakeSnapshot("Other GPU", kDiscrete, 5));
  EXPECT_THAT(ChosenOf(devices, {}), ElementsAre(2, 4, 1));
}

TEST(DevicesChoiceTest, WithoutSelectorsAndHardwareTakesOneSoftwareDeviceWithItsWarning) {
  const std::vector<DeviceSnapshot> devices = {MakeSnapshot("llvmpipe", kCpu, 1),
                                               MakeSnapshot("SwiftShader", kCpu, 2)};
  const auto choices = ChooseDevices(devices, {}, /*require_hardware=*/false);
  ASSERT_TRUE(choices.ok()) << choices.status();
  ASSERT_EQ(choices->size(), 1U);
  EXPECT_EQ(choices->front().index, 0U);
  EXPECT_THAT(choices->front().warning, HasSubstr("is a software device, used because no usable"));
  EXPECT_EQ(ChooseDevices(devices, {}, /*require_hardware=*/true).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(DevicesChoiceTest, TakesWhatIsNamedInTheOrderOfItsNames) {
  EXPECT_THAT(ChosenOf(ThreeDevices(), {"geforce", "0"}), ElementsAre(2, 0));
  EXPECT_THAT(ChosenOf(ThreeDevices(), {"0", "geforce"}), ElementsAre(0, 2));
}

TEST(DevicesChoiceTest, EachSoftwareDeviceThatIsNamedHasItsWarning) {
  const std::vector<DeviceSnapshot> devices = {MakeSnapshot("llvmpipe", kCpu, 1),
                                               MakeSnapshot("SwiftShader", kCpu, 2)};
  const auto choices = ChooseDevices(devices, {"1", "0"}, /*require_hardware=*/false);
  ASSERT_TRUE(choices.ok()) << choices.status();
  EXPECT_THAT(choices->front().warning, HasSubstr("'SwiftShader' is a software device"));
  EXPECT_THAT(choices->back().warning, HasSubstr("'llvmpipe' is a software device"));
}

TEST(DevicesChoiceTest, NamingOneDeviceTwiceIsAnErrorThatQuotesBothNames) {
  const absl::Status status =
      ChooseDevices(ThreeDevices(), {"iris", "geforce", "2"}, /*require_hardware=*/false).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'geforce' and '2' are the same device"), HasSubstr("NVIDIA")));
}

TEST(DevicesChoiceTest, ADriverThatTheLoaderWasGivenTwiceShowsOneDevice) {
  const DeviceSnapshot gpu = MakeSnapshot("RTX 4070", kDiscrete, 1);
  EXPECT_THAT(ChosenOf({gpu, gpu}, {}), ElementsAre(0));
  EXPECT_EQ(ChooseDevices({gpu, gpu}, {"0", "1"}, /*require_hardware=*/false).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// By two drivers.
std::vector<DeviceSnapshot> OneGpuTwice() {
  std::vector<DeviceSnapshot> devices = {MakeSnapshot("Radeon (RADV)", kDiscrete, 1),
                                         MakeSnapshot("Radeon (AMDVLK)", kDiscrete, 2)};
  for (DeviceSnapshot& device : devices) device.pci = PciAddress{0, 3, 0, 0};
  return devices;
}

TEST(DevicesChoiceTest, HardwareThatTwoDriversShowIsOpenedOnceAndSaysSo) {
  const auto choices = ChooseDevices(OneGpuTwice(), {}, /*require_hardware=*/false);
  ASSERT_TRUE(choices.ok()) << choices.status();
  ASSERT_EQ(choices->size(), 1U);
  EXPECT_THAT(choices->front().warning,
              AllOf(HasSubstr("1 = 'Radeon (AMDVLK)'"), HasSubstr("is left out")));
}

TEST(DevicesChoiceTest, HardwareThatIsNamedByTwoDriversIsAWarning) {
  const auto choices = ChooseDevices(OneGpuTwice(), {"AMDVLK", "RADV"}, /*require_hardware=*/false);
  ASSERT_TRUE(choices.ok()) << choices.status();
  EXPECT_EQ(choices->front().warning, "");
  EXPECT_THAT(choices->back().warning,
              AllOf(HasSubstr("'AMDVLK' and 'RADV'"), HasSubstr("PCI 0000:03:00.0")));
}

TEST(DevicesChoiceTest, TheFirstSelectorThatFailsIsTheError) {
  EXPECT_EQ(ChooseDevices(ThreeDevices(), {"0", "Radeon"}, false).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(ChooseDevices(ThreeDevices(), {"geforce", "llvmpipe"}, true).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ChooseDevices({}, {}, false).status().code(), absl::StatusCode::kNotFound);
}

TEST(CheckUsableTest, AcceptsADeviceThatHasAllThatIsNeeded) {
  EXPECT_TRUE(CheckUsable(MakeSnapshot("a", kDiscrete, 1)).ok());
  DeviceSnapshot oldest = MakeSnapshot("a", kDiscrete, 1);
  oldest.api_version = VK_API_VERSION_1_1;
  EXPECT_TRUE(CheckUsable(oldest).ok());
}

TEST(CheckUsableTest, WantsAHandleTypeForExportAndImport) {
  const VkExternalMemoryFeatureFlags unfit[] = {0, VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT,
                                                VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT};
  for (VkExternalMemoryFeatureFlags features : unfit) {
    DeviceSnapshot device = MakeSnapshot("a", kDiscrete, 1);
    device.opaque_fd_buffers.externalMemoryFeatures = features;
    EXPECT_EQ(CheckUsable(device).code(), absl::StatusCode::kFailedPrecondition) << features;
  }
}

TEST(CheckUsableTest, AcceptsDedicationAndDmaBufsAlone) {
  DeviceSnapshot device = MakeSnapshot("a", kDiscrete, 1);
  device.opaque_fd_buffers.externalMemoryFeatures |= VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  EXPECT_TRUE(CheckUsable(device).ok());
  device.extensions.insert(VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
  device.dma_buf_buffers = std::exchange(device.opaque_fd_buffers, {});
  device.dma_buf_buffers.compatibleHandleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
  EXPECT_TRUE(CheckUsable(device).ok());
}

TEST(CheckUsableTest, WantsAQueueThatWrites) {
  DeviceSnapshot device = MakeSnapshot("a", kDiscrete, 1);
  device.queue_families[0].queueFlags = VK_QUEUE_SPARSE_BINDING_BIT;
  EXPECT_EQ(CheckUsable(device).code(), absl::StatusCode::kFailedPrecondition);
  device.queue_families.clear();
  EXPECT_EQ(CheckUsable(device).code(), absl::StatusCode::kFailedPrecondition);
}

std::optional<uint32_t> FamilyOf(const std::vector<VkQueueFlags>& families) {
  DeviceSnapshot device = MakeSnapshot("a", kDiscrete, 1);
  device.queue_families.clear();
  for (VkQueueFlags flags : families) {
    VkQueueFamilyProperties family{};
    family.queueFlags = flags;
    family.queueCount = 1;
    device.queue_families.push_back(family);
  }
  return ChooseQueueFamily(device);
}

TEST(QueueFamilyTest, PrefersComputeBesideGraphicsAndFallsBackInOrder) {
  constexpr VkQueueFlags kGraphics = VK_QUEUE_GRAPHICS_BIT;
  constexpr VkQueueFlags kCompute = VK_QUEUE_COMPUTE_BIT;
  constexpr VkQueueFlags kTransfer = VK_QUEUE_TRANSFER_BIT;
  EXPECT_EQ(FamilyOf({kGraphics | kCompute, kTransfer, kCompute | kTransfer}), 2U);
  EXPECT_EQ(FamilyOf({kTransfer, kGraphics, kGraphics | kCompute}), 2U);
  EXPECT_EQ(FamilyOf({kTransfer, kGraphics}), 1U);
  EXPECT_EQ(FamilyOf({VK_QUEUE_SPARSE_BINDING_BIT, kTransfer}), 1U);
  EXPECT_EQ(FamilyOf({VK_QUEUE_SPARSE_BINDING_BIT}), std::nullopt);
  EXPECT_EQ(FamilyOf({}), std::nullopt);
}

TEST(QueueFamilyTest, PassesOverFamiliesWithoutQueues) {
  DeviceSnapshot device = MakeSnapshot("a", kDiscrete, 1);
  device.queue_families.push_back(device.queue_families[0]);
  device.queue_families[0].queueCount = 0;
  EXPECT_EQ(ChooseQueueFamily(device), 1U);
}

}  // namespace
}  // namespace heapbroker
