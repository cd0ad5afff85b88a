# How a quick build and one with sanitizers are compiled. Nothing here may change another build: `make lint` reads that one, and
# does not read all files again when this file changes (tools/linted_commit.py).
include_guard(GLOBAL)

if(WEFT_SANITIZE)
  set(sanitizer_flags -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer)
  add_compile_options(${sanitizer_flags} -fno-sanitize-recover=all -O1 -g1)
  add_link_options(${sanitizer_flags})
  # ThreadSanitizer ignores fences. Weft's order a store before a load; what they order otherwise is atomic.
  if(WEFT_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
  # ld takes 9 s for a program of sanitized code, lld 0.6 s, gold 2.5 s. Tried, because a compiler can be without them.
  include(CheckCXXSourceCompiles)
  foreach(linker lld gold)
    set(CMAKE_REQUIRED_LINK_OPTIONS -fuse-ld=${linker})
    check_cxx_source_compiles("int main() { return 0; }" WEFT_COMPILER_LINKS_WITH_${linker})
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    if(WEFT_COMPILER_LINKS_WITH_${linker})
      add_link_options(-fuse-ld=${linker})
      break()
    endif()
  endforeach()
endif()

# g++ searches all memory of the precompiled headers each time it looks for garbage, and finds little. Without these searches most
# files of a quick build take 10 % less time, and those of sanitized tests 8 %. A compiler then takes 0.5 and 1 GiB before the first one.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(WEFT_SANITIZE)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=1048576>)
  elseif(WEFT_QUICK_BUILD)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
  endif()
endif()

# weft_compile_together(target): compiles several of its files at a time: fewer in a quick build, in which a developer compiles
# again what has changed. Sanitized, twelve files of tests take four fifths of the time of two times six. So a name in an
# anonymous namespace is unique in the target (tools/check_names.py). The full build compiles each file alone, so a missing
# #include is found.
function(weft_compile_together target)
  if(WEFT_SANITIZE)
    set(number 12)
  else()
    set(number 8)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${number})
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # g++ takes the sources for headers
endfunction()

# weft_compile_quickly(target): how the layers and the MPI library are compiled with sanitizers and in a quick build.
function(weft_compile_quickly target)
  if(WEFT_SANITIZE OR WEFT_QUICK_BUILD)
    weft_compile_together(${target})
    target_precompile_headers(${target} REUSE_FROM weft_layer_headers)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# weft_add_layer_headers(): the precompiled headers of these.
function(weft_add_layer_headers)
  if(NOT WEFT_SANITIZE AND NOT WEFT_QUICK_BUILD)
    return()
  endif()
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/weft_layer_headers.cpp" "")
  add_library(weft_layer_headers OBJECT "${CMAKE_CURRENT_BINARY_DIR}/weft_layer_headers.cpp")
  target_link_libraries(weft_layer_headers PRIVATE Threads::Threads)
  weft_use_format(weft_layer_headers)
  weft_set_warnings(weft_layer_headers)
  target_compile_options(weft_layer_headers PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage> -O1)
  target_precompile_headers(weft_layer_headers PRIVATE
    <algorithm> <array> <atomic> <cstddef> <cstdint> <cstring> <exception> <functional> <map> <memory> <mutex> <optional> <span>
    <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector> "${weft_SOURCE_DIR}/src/base/format.h")
endfunction()

# weft_compile_program_quickly(target): how examples, mini-apps and benchmarks are compiled in a quick build.
function(weft_compile_program_quickly target)
  if(WEFT_QUICK_BUILD AND NOT WEFT_SANITIZE)
    weft_compile_together(${target})
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O1>)
    target_precompile_headers(${target} REUSE_FROM weft_program_headers)
  endif()
endfunction()

# weft_add_program_headers(): the precompiled headers of these. clang-tidy reads each source without them, so a missing #include is
# found.
function(weft_add_program_headers)
  if(NOT WEFT_QUICK_BUILD OR WEFT_SANITIZE)
    return()
  endif()
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/weft_program_headers.cpp" "int main() { return 0; }\n")
  weft_add_program(NAME weft_program_headers SOURCES "${CMAKE_CURRENT_BINARY_DIR}/weft_program_headers.cpp" LIBS weft::weft PLAIN)
  target_compile_options(weft_program_headers PRIVATE -O1)
  target_precompile_headers(weft_program_headers PRIVATE "${weft_SOURCE_DIR}/include/weft/weft.h")
endfunction()

# weft_compile_tests_quickly(target): how the tests' own code is compiled with sanitizers and in a quick build. Checks of each access
# for null and alignment take a third of the time and half of the bytes; the layers under test have them.
function(weft_compile_tests_quickly target)
  target_compile_options(${target} PRIVATE -O0)
  if(WEFT_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=null,alignment,vptr)
  endif()
endfunction()

# weft_add_test_headers(): the precompiled headers of all tests with sanitizers and in a quick build, since most of the time goes into
# these. Another build has none: there a missing #include of a test is found.
function(weft_add_test_headers)
  if(NOT WEFT_SANITIZE AND NOT WEFT_QUICK_BUILD)
    return()
  endif()
  file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/weft_test_headers.cpp" "")
  weft_add_program(NAME weft_test_headers SOURCES "${CMAKE_CURRENT_BINARY_DIR}/weft_test_headers.cpp" LIBS GTest::gtest_main weft::weft INTERNAL PLAIN)
  weft_compile_tests_quickly(weft_test_headers)
  target_precompile_headers(weft_test_headers PRIVATE <gtest/gtest.h> "${weft_SOURCE_DIR}/include/weft/weft.h")
endfunction()
