// How many elements a transfer has moved: MPI_Get_count, MPI_Get_elements, MPI_Status_set_elements.
#include <optional>

#include "weft/mpi/mpi.h"

#include "communication/status.h"
#include "entry/entry.h"
#include "entry/type_handles.h"

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

int MPI_Get_count_c(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(status); !error.ok()) return error;
    if (Error error = check_result(count); !error.ok()) return error;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    const MPI_Count bytes = status_bytes(*status);
    const MPI_Count size = type->size_bytes();
    if (bytes == 0) {
      *count = 0;
    } else {
      *count = size == 0 || bytes % size != 0 ? MPI_Count{MPI_UNDEFINED} : bytes / size;
    }
    return {};
  });
}

int MPI_Get_elements_c(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(status); !error.ok()) return error;
    if (Error error = check_result(count); !error.ok()) return error;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    *count = elements_in_bytes(type->signature(), status_bytes(*status)).value_or(MPI_UNDEFINED);
    return {};
  });
}

int MPI_Get_elements_x(const MPI_Status* status, MPI_Datatype datatype, MPI_Count* count) {
  return MPI_Get_elements_c(status, datatype, count);
}

int MPI_Status_set_elements_c(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(status); !error.ok()) return error;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    if (Error error = check_count(count); !error.ok()) return error;
    const std::optional<MPI_Count> bytes = bytes_of_elements(type->signature(), count);
    if (!bytes)
      return {MPI_ERR_ARG,
              "that many elements of the datatype cannot have been transferred; give a smaller count"};
    set_status_bytes(*status, *bytes);
    return {};
  });
}

int MPI_Status_set_elements_x(MPI_Status* status, MPI_Datatype datatype, MPI_Count count) {
  return MPI_Status_set_elements_c(status, datatype, count);
}
