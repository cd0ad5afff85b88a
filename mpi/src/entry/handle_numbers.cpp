// Handles as integers of Fortran.
#include <cstdint>

#include "weft/mpi/mpi.h"

#include "entry/handles.h"
#include "models/mpi/rank.h"
#include "models/mpi/virtual_ranks/running_code.h"

using namespace weft::mpi;

namespace {

// No error handler applies, so an exception has no other way than -1.
template <class Handle>
int number_of(Handle handle) {
  const LibraryRuns library;
  try {
    return this_rank().handle_numbers.number_of(handle_number(handle));
  } catch (...) {
    return -1;
  }
}

template <class Handle>
Handle handle_with(int number, Handle null_handle) {
  const LibraryRuns library;
  const std::uintptr_t handle = this_rank().handle_numbers.handle_of(number);
  return handle == 0 ? null_handle : reinterpret_cast<Handle>(handle);
}

}  // namespace

int MPI_Comm_toint(MPI_Comm comm) { return number_of(comm); }
int MPI_Errhandler_toint(MPI_Errhandler errhandler) { return number_of(errhandler); }
int MPI_File_toint(MPI_File file) { return number_of(file); }
int MPI_Group_toint(MPI_Group group) { return number_of(group); }
int MPI_Info_toint(MPI_Info info) { return number_of(info); }
int MPI_Message_toint(MPI_Message message) { return number_of(message); }
int MPI_Op_toint(MPI_Op op) { return number_of(op); }
int MPI_Request_toint(MPI_Request request) { return number_of(request); }
int MPI_Session_toint(MPI_Session session) { return number_of(session); }
int MPI_Type_toint(MPI_Datatype datatype) { return number_of(datatype); }
int MPI_Win_toint(MPI_Win win) { return number_of(win); }

MPI_Comm MPI_Comm_fromint(int comm) { return handle_with(comm, MPI_COMM_NULL); }
MPI_Errhandler MPI_Errhandler_fromint(int errhandler) { return handle_with(errhandler, MPI_ERRHANDLER_NULL); }
MPI_File MPI_File_fromint(int file) { return handle_with(file, MPI_FILE_NULL); }
MPI_Group MPI_Group_fromint(int group) { return handle_with(group, MPI_GROUP_NULL); }
MPI_Info MPI_Info_fromint(int info) { return handle_with(info, MPI_INFO_NULL); }
MPI_Message MPI_Message_fromint(int message) { return handle_with(message, MPI_MESSAGE_NULL); }
MPI_Op MPI_Op_fromint(int op) { return handle_with(op, MPI_OP_NULL); }
MPI_Request MPI_Request_fromint(int request) { return handle_with(request, MPI_REQUEST_NULL); }
MPI_Session MPI_Session_fromint(int session) { return handle_with(session, MPI_SESSION_NULL); }
MPI_Datatype MPI_Type_fromint(int datatype) { return handle_with(datatype, MPI_DATATYPE_NULL); }
MPI_Win MPI_Win_fromint(int win) { return handle_with(win, MPI_WIN_NULL); }
