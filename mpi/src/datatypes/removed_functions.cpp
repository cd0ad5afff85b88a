// Functions that MPI 3.0 removed. Other libraries of the standard ABI export them too, so old programs may need them.
#include "weft/mpi/mpi.h"

#include "entry/entry.h"
#include "entry/type_handles.h"

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

int MPI_Address(void* location, MPI_Aint* address) { return MPI_Get_address(location, address); }

int MPI_Errhandler_create(MPI_Comm_errhandler_function* comm_errhandler_fn, MPI_Errhandler* errhandler) {
  return MPI_Comm_create_errhandler(comm_errhandler_fn, errhandler);
}
int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler* errhandler) {
  return MPI_Comm_get_errhandler(comm, errhandler);
}
int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler) {
  return MPI_Comm_set_errhandler(comm, errhandler);
}

int MPI_Type_hindexed(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
                      MPI_Datatype oldtype, MPI_Datatype* newtype) {
  return MPI_Type_create_hindexed(count, array_of_blocklengths, array_of_displacements, oldtype, newtype);
}
int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype,
                     MPI_Datatype* newtype) {
  return MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}
int MPI_Type_struct(int count, int array_of_blocklengths[], MPI_Aint array_of_displacements[],
                    MPI_Datatype array_of_types[], MPI_Datatype* newtype) {
  return MPI_Type_create_struct(count, array_of_blocklengths, array_of_displacements, array_of_types,
                                newtype);
}

int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint* extent) {
  MPI_Aint lower_bound = 0;
  return MPI_Type_get_extent(datatype, &lower_bound, extent);
}
int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint* displacement) {
  MPI_Aint extent = 0;
  return MPI_Type_get_extent(datatype, displacement, &extent);
}
int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint* displacement) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    Datatype* type = nullptr;
    if (Error error = check_result(displacement); !error.ok()) return error;
    if (Error error = find_type(datatype, &type); !error.ok()) return error;
    *displacement = type->lower_bound() + type->extent();
    return {};
  });
}
