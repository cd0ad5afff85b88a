# `cmake --install` (component `devel`): headers, static libraries and a package file, so that a program of one's
# own says find_package(weft) and links weft::weft. The wheel has it inside the folder of the Python package; `weft cmake-dir`
# prints where.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(weft_package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/weft")
get_property(weft_layers GLOBAL PROPERTY WEFT_LAYERS)

install(DIRECTORY "${weft_SOURCE_DIR}/include/weft" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT devel
        FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
install(TARGETS weft ${weft_layers} EXPORT weft-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT devel)
if(WEFT_LINK_TIME_OPTIMIZATION)
  # A user's program links the machine code. The rest would make the libraries 60 MB and each link 12 s.
  install(CODE "file(GLOB libraries \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libweft_*.a\")
    foreach(library IN LISTS libraries)
      execute_process(COMMAND \"${CMAKE_OBJCOPY}\" --remove-section .gnu.lto_* --remove-section .gnu.debuglto_*
                              --strip-symbol __gnu_lto_v1 \${library} COMMAND_ERROR_IS_FATAL ANY)
    endforeach()" COMPONENT devel)
endif()
install(EXPORT weft-targets NAMESPACE weft:: DESTINATION "${weft_package_folder}" COMPONENT devel)

add_custom_target(weft_libraries)
foreach(layer IN LISTS weft_layers)
  get_target_property(type ${layer} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    add_dependencies(weft_libraries ${layer})
  endif()
endforeach()

# Where UCX is if it is on no path of CMake's.
set(weft_ucx_hint "\"${ucx_DIR}\"")
if(WEFT_RELOCATABLE)
  set(weft_ucx_hint "")
endif()
configure_package_config_file("${weft_SOURCE_DIR}/cmake/weft-config.cmake.in" "${weft_BINARY_DIR}/weft-config.cmake"
                              INSTALL_DESTINATION "${weft_package_folder}")
write_basic_package_version_file("${weft_BINARY_DIR}/weft-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${weft_BINARY_DIR}/weft-config.cmake" "${weft_BINARY_DIR}/weft-config-version.cmake"
        DESTINATION "${weft_package_folder}" COMPONENT devel)
