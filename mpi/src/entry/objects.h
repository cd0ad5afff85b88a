// The objects of handles of info objects, groups and error handlers.
#pragma once

#include <memory>
#include <string_view>

#include "weft/mpi/mpi.h"

#include "models/mpi/objects/error.h"
#include "models/mpi/objects/error_handler.h"
#include "models/mpi/objects/group.h"
#include "models/mpi/objects/info.h"
#include "models/mpi/virtual_ranks/object_kind.h"

namespace weft::mpi {

// MPI_ERR_INFO, MPI_ERR_GROUP or MPI_ERR_ERRHANDLER if the handle is null or of another kind. The handle keeps the object.
Error find_object(MPI_Info handle, Info** info);
Error find_object(MPI_Group handle, Group** group);
Error find_object(MPI_Errhandler handle, ErrorHandler** handler);
// Finds an error handler for objects of that kind, which errors call `name`. MPI_ERR_ERRHANDLER if the handle is null or of another
// kind, or if the handler was made for objects of another kind.
Error find_handler_for(ObjectKind kind, std::string_view name, MPI_Errhandler handle, ErrorHandler** handler);

// An info argument that may be MPI_INFO_NULL; the result is null then.
Error find_optional(MPI_Info handle, Info** info);

// Gives the program a reference. A predefined object has its predefined handle.
MPI_Errhandler give_handle(Ref<ErrorHandler> handler);
// A group without members is MPI_GROUP_EMPTY.
MPI_Group give_group(MembersPointer members, std::shared_ptr<BufferSpace> session_space);

}  // namespace weft::mpi
