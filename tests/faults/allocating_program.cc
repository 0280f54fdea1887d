// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// allocating_program COUNT SIZE [keep]: COUNT allocations of SIZE bytes in memory
// type 0 of the first device, all alive at once, and then freed unless they are to
// be kept. For faults that a test does not survive.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/faults/vulkan_program.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const heapbroker::VulkanProgram program;
  std::vector<VkDeviceMemory> memories(std::strtoul(argv[1], nullptr, 10));
  for (VkDeviceMemory& memory : memories) {
    if (program.Allocate(0, std::strtoul(argv[2], nullptr, 10), &memory) != VK_SUCCESS) return 1;
  }
  const bool keep = argc > 3 && std::strcmp(argv[3], "keep") == 0;
  for (VkDeviceMemory memory : memories) {
    if (!keep) program.Free(memory);
  }
  return 0;
}
