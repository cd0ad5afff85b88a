# Boost.Context, for virtual ranks: several MPI ranks in one process, each with a stack of its own.
#
# Sets WEFT_VIRTUAL_RANKS to whether it was found. weft_use_boost_context(target) then links it and defines
# WEFT_VIRTUAL_RANKS=1 for the target's own sources. Without Boost.Context the build has no virtual ranks, and
# `weft run --ranks` says so.
#
# The static library is linked, so that the wheel needs no Boost at run time. Distributions compile its C++ part without
# -fPIC. Weft has stacks of its own and links the assembler part alone, which is position-independent: no source may use
# boost::context::stack_traits, nor a stack of Boost. The linker refuses such code in libmpi_abi.so.1.
include_guard(GLOBAL)

set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.71 CONFIG QUIET COMPONENTS context)
unset(Boost_USE_STATIC_LIBS)
set(WEFT_VIRTUAL_RANKS OFF)
if(TARGET Boost::context)
  set(WEFT_VIRTUAL_RANKS ON)
else()
  message(STATUS "Boost.Context (static library) was not found: this build has one MPI rank per process, without `weft run --ranks`")
endif()

function(weft_use_boost_context target)
  if(WEFT_VIRTUAL_RANKS)
    target_link_libraries(${target} PRIVATE Boost::context)
    target_compile_definitions(${target} PRIVATE WEFT_VIRTUAL_RANKS=1)
  endif()
endfunction()
