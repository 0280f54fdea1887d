# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
# What of a checkout of ExecuTorch its memory allocators need, and the test against
# them. Its headers include each other as executorch/..., whatever the folder's name.
set(EXECUTORCH_INCLUDE ${CMAKE_CURRENT_BINARY_DIR}/executorch_include)
file(MAKE_DIRECTORY ${EXECUTORCH_INCLUDE})
file(CREATE_LINK ${HEAPBROKER_EXECUTORCH_DIR} ${EXECUTORCH_INCLUDE}/executorch SYMBOLIC)

set(EXECUTORCH_PLATFORM ${HEAPBROKER_EXECUTORCH_DIR}/runtime/platform)
# As the versions have them; the last two are one file under its old and new name.
file(GLOB EXECUTORCH_SOURCES
  ${EXECUTORCH_PLATFORM}/*.cpp
  ${EXECUTORCH_PLATFORM}/target/Posix.cpp
  ${EXECUTORCH_PLATFORM}/default/posix.cpp)
if(NOT EXECUTORCH_SOURCES)
  message(FATAL_ERROR "HEAPBROKER_EXECUTORCH_DIR is ${HEAPBROKER_EXECUTORCH_DIR}, which has no "
    "runtime/platform/*.cpp: name the root folder of a checkout of ExecuTorch.")
endif()
add_library(heapbroker_real_executorch STATIC ${EXECUTORCH_SOURCES})
target_include_directories(heapbroker_real_executorch SYSTEM PUBLIC
  ${EXECUTORCH_INCLUDE} ${HEAPBROKER_EXECUTORCH_DIR}/runtime/core/portable_type/c10)
target_compile_definitions(heapbroker_real_executorch PUBLIC C10_USING_CUSTOM_GENERATED_MACROS)
target_link_libraries(heapbroker_real_executorch PRIVATE heapbroker_build_flags)

heapbroker_test(NAME executorch_real_test
  SOURCES executorch_test.cc vulkan_block_source.cc
  LIBRARIES heapbroker_client heapbroker_fake_daemon heapbroker_real_executorch)
