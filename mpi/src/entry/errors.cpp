// Error classes, codes and strings.
#include <cstring>
#include <string>

#include "weft/mpi/mpi.h"

#include "entry/entry.h"
#include "models/mpi/rank.h"

using namespace weft::mpi;

int MPI_Error_class(int errorcode, int* errorclass) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{errorclass, "errorclass"}}); !error.ok()) return error;
    return this_rank().error_codes.class_of(errorcode, errorclass);
  });
}

int MPI_Error_string(int errorcode, char* string, int* resultlen) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{string, "string"}, {resultlen, "resultlen"}}); !error.ok()) return error;
    std::string text;
    if (Error error = this_rank().error_codes.string_of(errorcode, &text); !error.ok()) return error;
    copy_string(text, MPI_MAX_ERROR_STRING, string);
    *resultlen = static_cast<int>(std::strlen(string));
    return {};
  });
}

int MPI_Add_error_class(int* errorclass) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{errorclass, "errorclass"}}); !error.ok()) return error;
    return this_rank().error_codes.add_class(errorclass);
  });
}

int MPI_Add_error_code(int errorclass, int* errorcode) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{errorcode, "errorcode"}}); !error.ok()) return error;
    return this_rank().error_codes.add_code(errorclass, errorcode);
  });
}

int MPI_Add_error_string(int errorcode, const char* string) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{string, "string"}}); !error.ok()) return error;
    return this_rank().error_codes.set_string(errorcode, string);
  });
}

int MPI_Remove_error_class(int errorclass) {
  return guarded(__func__, kNoObject, [&] { return this_rank().error_codes.remove_class(errorclass); });
}

int MPI_Remove_error_code(int errorcode) {
  return guarded(__func__, kNoObject, [&] { return this_rank().error_codes.remove_code(errorcode); });
}

int MPI_Remove_error_string(int errorcode) {
  return guarded(__func__, kNoObject, [&] { return this_rank().error_codes.remove_string(errorcode); });
}
