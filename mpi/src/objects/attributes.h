// The objects that have attributes, and what happens to attributes when an object is duplicated or freed.
#pragma once

#include "weft/mpi/mpi.h"

#include "models/mpi/objects/attributes.h"
#include "models/mpi/objects/error.h"
#include "models/mpi/objects/object.h"

namespace weft::mpi {

// MPI_ERR_COMM, MPI_ERR_TYPE or MPI_ERR_WIN if the handle is null or of another kind.
Error find_attributed(MPI_Comm comm, Object** object);
Error find_attributed(MPI_Datatype datatype, Object** object);
Error find_attributed(MPI_Win win, Object** object);

// For MPI_Comm_dup and MPI_Type_dup: gives the duplicate the attributes of `source`, whose handle is `handle`. After an error
// the caller frees the duplicate.
template <class Handle>
Error copy_attributes(Handle handle, Object& source, Object& duplicate) {
  return source.has_attributes() ? source.attributes().copy_to(duplicate.attributes(), handle) : Error();
}

// For MPI_Comm_free, MPI_Type_free, MPI_Win_free and MPI_Finalize, before the object goes. After an error the object stays.
template <class Handle>
Error remove_attributes(Handle handle, Object& object) {
  return object.has_attributes() ? object.attributes().remove_all(handle) : Error();
}

}  // namespace weft::mpi
