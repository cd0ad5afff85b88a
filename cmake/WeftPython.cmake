# weft_add_python_module(NAME name SOURCES file... [LIBS target...])
#
# The extension module weft.<name>. In the build tree <build>/python is a usable package (PYTHONPATH=<build>/python):
# the modules of python/weft and the headers for kernels linked in, beside the extension. Installed into the folder of the package
# weft (component `python`), the extension finds UCX in the libucx package next to it; LD_LIBRARY_PATH goes before that.
include_guard(GLOBAL)

# A macro: find_package sets variables and targets for the caller.
macro(weft_find_python)
  if(NOT Python_EXECUTABLE)
    if(WEFT_PYTHON)
      set(Python_EXECUTABLE "${WEFT_PYTHON}")
    elseif(EXISTS "${weft_SOURCE_DIR}/.venv/bin/python")
      set(Python_EXECUTABLE "${weft_SOURCE_DIR}/.venv/bin/python")
    endif()
  endif()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module ${SKBUILD_SABI_COMPONENT})
endmacro()

# The package folder of the build tree, <build>/python/weft: links to the modules in python/weft.
function(weft_link_python_package)
  file(GLOB entries CONFIGURE_DEPENDS "${weft_SOURCE_DIR}/python/weft/*")
  file(MAKE_DIRECTORY "${weft_BINARY_DIR}/python/weft")
  foreach(entry IN LISTS entries)
    get_filename_component(name "${entry}" NAME)
    if(NOT name STREQUAL "__pycache__")
      file(CREATE_LINK "${entry}" "${weft_BINARY_DIR}/python/weft/${name}" SYMBOLIC)
    endif()
  endforeach()
  # Headers for kernels that programs compile at run time, see weft.include_dir().
  file(MAKE_DIRECTORY "${weft_BINARY_DIR}/python/weft/include/weft")
  file(CREATE_LINK "${weft_SOURCE_DIR}/include/weft/device" "${weft_BINARY_DIR}/python/weft/include/weft/device" SYMBOLIC)
endfunction()

function(weft_add_python_module)
  cmake_parse_arguments(PARSE_ARGV 0 module "" "NAME" "SOURCES;LIBS")
  if(NOT module_NAME OR NOT module_SOURCES OR module_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "weft_add_python_module(NAME name SOURCES file... [LIBS target...]): got '${ARGV}'")
  endif()
  weft_find_python()
  # `make wheel` asks scikit-build-core for one extension that serves every Python from 3.12 on.
  set(stable_abi "")
  if(SKBUILD_SABI_COMPONENT)
    set(stable_abi USE_SABI ${SKBUILD_SABI_VERSION})
  endif()
  Python_add_library(${module_NAME} MODULE ${stable_abi} WITH_SOABI ${module_SOURCES})
  # Only PyInit_<name> is seen from outside, and a release build has no symbol table.
  set_target_properties(${module_NAME} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_options(${module_NAME} PRIVATE $<$<CONFIG:Release,MinSizeRel>:-Wl,-s>)
  weft_set_warnings(${module_NAME})
  weft_optimize_at_link(${module_NAME})
  target_include_directories(${module_NAME} PRIVATE "${weft_SOURCE_DIR}/src")
  target_link_libraries(${module_NAME} PRIVATE ${module_LIBS})
  weft_use_format(${module_NAME})
  set_target_properties(${module_NAME} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${weft_BINARY_DIR}/python/weft"
                                                  INSTALL_RPATH "$ORIGIN/../libucx/lib")
  weft_link_python_package()
  install(TARGETS ${module_NAME} LIBRARY DESTINATION . COMPONENT python)
  install(DIRECTORY "${weft_SOURCE_DIR}/include/weft/device" DESTINATION include/weft COMPONENT python
          FILES_MATCHING PATTERN "*.cuh")
endfunction()
