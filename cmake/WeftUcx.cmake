# weft_find_ucx(): finds UCX >= 1.16 and defines ucx::ucp, ucx::ucs, ucx::uct for the whole build.
#
# It is looked for in UCX_ROOT, then in the libucx package (PyPI: libucx-cu13) of a Python: WEFT_PYTHON, the
# Python that builds the wheel, .venv/bin/python, python3 on PATH. A UCX on CMAKE_PREFIX_PATH serves as well.
include_guard(GLOBAL)

function(weft_python_ucx_folder result)
  set(${result} "" PARENT_SCOPE)
  set(pythons ${WEFT_PYTHON} ${Python_EXECUTABLE} ${Python3_EXECUTABLE} "${weft_SOURCE_DIR}/.venv/bin/python")
  find_program(WEFT_PYTHON3_ON_PATH python3)
  mark_as_advanced(WEFT_PYTHON3_ON_PATH)
  foreach(python IN LISTS pythons WEFT_PYTHON3_ON_PATH)
    if(EXISTS "${python}")
      execute_process(
        COMMAND "${python}" -c "import importlib.util as u; print(u.find_spec('libucx').submodule_search_locations[0])"
        OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
      if(status EQUAL 0)
        set(${result} "${folder}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
endfunction()

macro(weft_find_ucx)
  if(UCX_ROOT)
    list(PREPEND CMAKE_PREFIX_PATH "${UCX_ROOT}")
  else()
    weft_python_ucx_folder(weft_ucx_folder)
    list(APPEND CMAKE_PREFIX_PATH ${weft_ucx_folder})
  endif()
  find_package(ucx 1.16 CONFIG QUIET)
  if(NOT ucx_FOUND)
    message(FATAL_ERROR "UCX >= 1.16 was not found (versions seen and refused: '${ucx_CONSIDERED_VERSIONS}'). "
                        "Run `make setup`, or pass -DWEFT_PYTHON=<a Python with the libucx-cu13 package>, "
                        "or -DUCX_ROOT=<folder of a UCX installation>.")
  endif()
  set_target_properties(ucx::ucp ucx::ucs ucx::uct PROPERTIES IMPORTED_GLOBAL TRUE)
  message(STATUS "UCX ${ucx_VERSION}: ${ucx_DIR}")
endmacro()
