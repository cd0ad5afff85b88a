# cmake -DSOURCE=folder -DOUTPUT=file -P write_source_version.cmake
#
# Writes a header that says which commit a program was built from, for the records that it writes; touches it only when
# that changes.
set(version "unknown")
find_package(Git QUIET)
if(GIT_FOUND)
  execute_process(COMMAND "${GIT_EXECUTABLE}" -C "${SOURCE}" rev-parse --short=12 HEAD OUTPUT_VARIABLE commit
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    execute_process(COMMAND "${GIT_EXECUTABLE}" -C "${SOURCE}" status --porcelain --untracked-files=no
                    OUTPUT_VARIABLE changes ERROR_QUIET)
    set(version "${commit}")
    if(changes)
      string(APPEND version "-dirty")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#pragma once\ninline constexpr char kSourceVersion[] = \"${version}\";\n")
