// SPDX-FileCopyrightText: The heapbroker authors
// SPDX-License-Identifier: Apache-2.0

// Linked into programs that open a Vulkan device, in builds with the address
// sanitizer: keeps its leak check for our code, and takes drivers out of it.
//
// lavapipe loses 128 bytes with each device, and the validation layer some more.
// A suppression names the module that the memory was allocated in, but the loader
// unloads drivers before the check, which then knows no name. So nothing is
// unloaded here.

extern "C" {

__attribute__((visibility("default"), used)) int dlclose(void* /*handle*/) { return 0; }

__attribute__((visibility("default"), used)) const char* __lsan_default_suppressions() {
  return "leak:libvulkan_lvp.so\n"
         "leak:libVkLayer_khronos_validation.so\n";
}

// What is suppressed is no news, and would come in between a program's own words.
__attribute__((visibility("default"), used)) const char* __lsan_default_options() {
  return "print_suppressions=0";
}

}  // extern "C"
