# The functions with which each folder's CMakeLists.txt declares its targets.
include_guard(GLOBAL)

function(weft_set_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra)
  if(WEFT_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
    # False alarms inside inlined library code (GCC bugs 105651, 105329, 107852 and kin), gone in GCC 14.
    set(false_alarms -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
    target_compile_options(${target} PRIVATE ${false_alarms})
    target_link_options(${target} PRIVATE ${false_alarms})  # optimisation at link time looks again
  endif()
endfunction()

# weft_use_format(target): its sources may include base/format.h, which needs headers of fmt and nothing to link.
function(weft_use_format target)
  target_include_directories(${target} SYSTEM PRIVATE $<BUILD_INTERFACE:$<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>>)
endfunction()

# weft_optimize_at_link(target): a release build optimises the program or module as a whole, together with the layers
# that it links. Every other program is linked with the layers' machine code, which takes a tenth of the time.
function(weft_optimize_at_link target)
  if(WEFT_LINK_TIME_OPTIMIZATION)
    set_target_properties(${target} PROPERTIES INTERPROCEDURAL_OPTIMIZATION_RELEASE ON)
  endif()
endfunction()

# weft_add_layer(NAME name SOURCES file... [DEPENDS target...] [INTERNAL])
#
# The static library weft_<name>, alias weft::<name>. Users of the layer see include/ only; its own sources
# see src/ as well. DEPENDS are the layers and libraries its users link too (all of them, for a static
# library); fmt is used inside (base/format.h) and does not reach users. With INTERNAL the layer is no part of weft::weft and is
# not installed: programs do not call it, so they need not wait for it.
#
# In a release build the objects hold machine code and also what optimisation at link time needs: the Python extension and
# the benchmarks are optimised across the layers, which saves 15-18 % of Weft's instructions per message. WeftInstall.cmake
# takes the latter out of the installed libraries.
function(weft_add_layer)
  cmake_parse_arguments(PARSE_ARGV 0 layer "INTERNAL" "NAME" "SOURCES;DEPENDS")
  if(NOT layer_NAME OR layer_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weft_add_layer(NAME name SOURCES file... [DEPENDS target...] [INTERNAL]): got '${ARGV}'")
  endif()
  set(target weft_${layer_NAME})
  if(layer_SOURCES)
    add_library(${target} STATIC ${layer_SOURCES})
    set(scope PUBLIC)
    target_include_directories(${target} PRIVATE "${weft_SOURCE_DIR}/src")
    weft_use_format(${target})
    weft_set_warnings(${target})
    weft_compile_quickly(${target})
    if(WEFT_LINK_TIME_OPTIMIZATION)
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-flto=auto;-ffat-lto-objects>)
    endif()
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope} "$<BUILD_INTERFACE:${weft_SOURCE_DIR}/include>"
                                                "$<INSTALL_INTERFACE:include>")
  target_link_libraries(${target} ${scope} ${layer_DEPENDS} Threads::Threads)
  add_library(weft::${layer_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${layer_NAME})
  if(NOT layer_INTERNAL)
    target_link_libraries(weft INTERFACE ${target})
    set_property(GLOBAL APPEND PROPERTY WEFT_LAYERS ${target})
  endif()
endfunction()

# weft_add_program(NAME name SOURCES file... [LIBS target...] [INTERNAL] [OPTIMIZED_AT_LINK] [PLAIN])
#
# An executable. With INTERNAL it also sees the private headers under src/ (tests, benchmarks of the machine). With
# OPTIMIZED_AT_LINK a release build optimises it as a whole, together with the layers that it links. With PLAIN the caller says how
# it is compiled in a quick build.
function(weft_add_program)
  cmake_parse_arguments(PARSE_ARGV 0 program "INTERNAL;OPTIMIZED_AT_LINK;PLAIN" "NAME" "SOURCES;LIBS")
  if(NOT program_NAME OR NOT program_SOURCES OR program_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weft_add_program(NAME name SOURCES file... [LIBS target...] [INTERNAL]): got '${ARGV}'")
  endif()
  add_executable(${program_NAME} ${program_SOURCES})
  if(program_OPTIMIZED_AT_LINK AND NOT WEFT_QUICK_BUILD)
    weft_optimize_at_link(${program_NAME})
  elseif(WEFT_LINK_TIME_OPTIMIZATION)
    target_link_options(${program_NAME} PRIVATE -fno-lto)
  endif()
  target_link_libraries(${program_NAME} PRIVATE ${program_LIBS})
  target_include_directories(${program_NAME} PRIVATE "${weft_SOURCE_DIR}/include")
  if(program_INTERNAL)
    target_link_libraries(${program_NAME} PRIVATE fmt::fmt-header-only)
    target_include_directories(${program_NAME} PRIVATE "${weft_SOURCE_DIR}/src" "${weft_SOURCE_DIR}")
  endif()
  weft_set_warnings(${program_NAME})
  if(NOT program_PLAIN)
    weft_compile_program_quickly(${program_NAME})
  endif()
endfunction()

# weft_add_test(NAME name SOURCES file... [LIBS target...] [LONG] [TIMEOUT seconds])
#
# A GoogleTest executable and one ctest entry that runs all of it: starting a process per test case costs
# more than the cases do. Each run may take TIMEOUT seconds (120), so that a hang is a failure.
#
# With sanitizers and in a quick build the tests' own code is not optimised, headers are precompiled, and several files are compiled
# at a time. The code of LONG tests, which do much work, is optimised as elsewhere.
function(weft_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 test "LONG" "NAME;TIMEOUT" "SOURCES;LIBS")
  if(test_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weft_add_test(NAME name SOURCES file... [LIBS target...] [LONG] [TIMEOUT seconds]): got '${ARGV}'")
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 120)
  endif()
  weft_add_program(NAME ${test_NAME} SOURCES ${test_SOURCES} LIBS ${test_LIBS} GTest::gtest_main INTERNAL PLAIN)
  # Optimised, the tests' own code takes half as long again to compile, and with sanitizers twice as long. The layers
  # under test stay as they are.
  set(is_quick OFF)
  if(WEFT_SANITIZE OR WEFT_QUICK_BUILD)
    set(is_quick ON)
  endif()
  if(is_quick)
    weft_compile_together(${test_NAME})
  endif()
  if(is_quick AND NOT test_LONG)
    weft_compile_tests_quickly(${test_NAME})
    target_precompile_headers(${test_NAME} REUSE_FROM weft_test_headers)
  else()
    target_compile_options(${test_NAME} PRIVATE -O1)
  endif()
  add_test(NAME ${test_NAME} COMMAND ${test_NAME} --gtest_brief=1)
  set_tests_properties(${test_NAME} PROPERTIES TIMEOUT ${test_TIMEOUT} COST ${test_TIMEOUT})  # the longest begin first
endfunction()

# weft_group_targets(name folder): the target <name>, which builds every target declared in or below folder.
function(weft_group_targets name folder)
  set(folders "${CMAKE_CURRENT_SOURCE_DIR}/${folder}")
  set(members "")
  while(folders)
    list(POP_FRONT folders current)
    if(EXISTS "${current}/CMakeLists.txt")
      get_property(targets DIRECTORY "${current}" PROPERTY BUILDSYSTEM_TARGETS)
      get_property(subfolders DIRECTORY "${current}" PROPERTY SUBDIRECTORIES)
      list(APPEND members ${targets})
      list(APPEND folders ${subfolders})
    endif()
  endwhile()
  add_custom_target(${name})
  if(members)
    add_dependencies(${name} ${members})
  endif()
endfunction()
