# SPDX-FileCopyrightText: The heapbroker authors
# SPDX-License-Identifier: Apache-2.0
# What an application needs and nothing else: the library, the public headers, and what
# finds both, for CMake and for pkg-config. All in the component `client`.
include(CMakePackageConfigHelpers)
set(PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/heapbroker)
set(PKGCONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# To run.
install(TARGETS heapbroker_client_shared EXPORT heapbrokerTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT client)

# To build.
install(DIRECTORY include/heapbroker ${PROJECT_SOURCE_DIR}/common/base/heapbroker
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT client FILES_MATCHING PATTERN "*.h")
install(EXPORT heapbrokerTargets NAMESPACE heapbroker:: DESTINATION ${PACKAGE_DIR}
  COMPONENT client)
configure_package_config_file(heapbrokerConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/heapbrokerConfig.cmake INSTALL_DESTINATION ${PACKAGE_DIR})
# As the library's soname has it.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/heapbrokerConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heapbrokerConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/heapbrokerConfigVersion.cmake
  DESTINATION ${PACKAGE_DIR} COMPONENT client)

# From the folder of heapbroker.pc, so that the prefix can be chosen when it is
# installed, or the whole moved; unless the folders were given as absolute paths.
set(PC_FOLDER /${PKGCONFIG_DIR})
foreach(KIND LIBDIR INCLUDEDIR)
  set(PC_${KIND} ${CMAKE_INSTALL_${KIND}})
  if(NOT IS_ABSOLUTE ${PC_${KIND}})
    file(RELATIVE_PATH PC_${KIND} ${PC_FOLDER} /${PC_${KIND}})
    set(PC_${KIND} "\${pcfiledir}/${PC_${KIND}}")
  endif()
endforeach()
configure_file(heapbroker.pc.in ${CMAKE_CURRENT_BINARY_DIR}/heapbroker.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heapbroker.pc DESTINATION ${PKGCONFIG_DIR}
  COMPONENT client)
