# Compiler settings that hold for the whole tree.
include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  if(WEFT_SANITIZE)
    set(CMAKE_BUILD_TYPE Debug CACHE STRING "Build type" FORCE)  # assertions stay in
  else()
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
endif()

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(WEFT_CCACHE ccache)
  mark_as_advanced(WEFT_CCACHE)
  if(WEFT_CCACHE)
    # Files with precompiled headers are kept only under these two conditions: https://ccache.dev/manual/4.7.5.html#_precompiled_headers
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${WEFT_CCACHE}")
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND (WEFT_QUICK_BUILD OR WEFT_SANITIZE))
      add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
    endif()
  endif()
endif()

# Tried, not assumed: some installations of g++ come without the programs that link in this way.
# A program that has Weft as a sub-project is not, so that it links quickly. Nor is a quick build.
set(WEFT_LINK_TIME_OPTIMIZATION OFF)
if(PROJECT_IS_TOP_LEVEL AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_AR AND NOT WEFT_SANITIZE
   AND NOT WEFT_QUICK_BUILD)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS "-flto=auto -fno-fat-lto-objects")
  check_cxx_source_compiles("int main() { return 0; }" WEFT_COMPILER_OPTIMIZES_AT_LINK)
  unset(CMAKE_REQUIRED_FLAGS)
  set(WEFT_LINK_TIME_OPTIMIZATION ${WEFT_COMPILER_OPTIMIZES_AT_LINK})
  if(NOT WEFT_LINK_TIME_OPTIMIZATION)
    message(STATUS "This g++ cannot optimise at link time: a message takes some 15 % more instructions than it could")
  endif()
endif()

# RUNPATH rather than RPATH: LD_LIBRARY_PATH can then replace the built-in UCX with a site's own.
add_link_options(-Wl,--enable-new-dtags)

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

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
