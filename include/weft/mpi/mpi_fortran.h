/* Handles and statuses between C and Fortran, for <mpi.h>. A Fortran handle is the int of MPI_X_toint; a Fortran status has the ints of
 * MPI_Status, in its order. Functions of the header, because libmpi_abi.so.1 has none for them: a program that uses them runs
 * with every library of the standard ABI. `__inline`, because C of 1990 (-ansi) has no `inline`. */
#ifndef WEFT_MPI_MPI_FORTRAN_H
#define WEFT_MPI_MPI_FORTRAN_H

#include "mpi_constants.h"
#include "mpi_functions.h"

/* clang-format off */
/* NOLINTBEGIN: this header is C. */

/* INTEGER of Fortran. With another size than that of int, pass handles through int. */
typedef int MPI_Fint;
/* TYPE(MPI_Status) of the module mpi_f08. */
typedef MPI_Status MPI_F08_status;

#define MPI_F_STATUS_IGNORE ((MPI_Fint*)0)
#define MPI_F_STATUSES_IGNORE ((MPI_Fint*)0)
#define MPI_F08_STATUS_IGNORE ((MPI_F08_status*)0)
#define MPI_F08_STATUSES_IGNORE ((MPI_F08_status*)0)

/* Handles */
static __inline MPI_Fint MPI_Comm_c2f(MPI_Comm comm) { return MPI_Comm_toint(comm); }
static __inline MPI_Comm MPI_Comm_f2c(MPI_Fint comm) { return MPI_Comm_fromint(comm); }
static __inline MPI_Fint MPI_Errhandler_c2f(MPI_Errhandler errhandler) { return MPI_Errhandler_toint(errhandler); }
static __inline MPI_Errhandler MPI_Errhandler_f2c(MPI_Fint errhandler) { return MPI_Errhandler_fromint(errhandler); }
static __inline MPI_Fint MPI_File_c2f(MPI_File file) { return MPI_File_toint(file); }
static __inline MPI_File MPI_File_f2c(MPI_Fint file) { return MPI_File_fromint(file); }
static __inline MPI_Fint MPI_Group_c2f(MPI_Group group) { return MPI_Group_toint(group); }
static __inline MPI_Group MPI_Group_f2c(MPI_Fint group) { return MPI_Group_fromint(group); }
static __inline MPI_Fint MPI_Info_c2f(MPI_Info info) { return MPI_Info_toint(info); }
static __inline MPI_Info MPI_Info_f2c(MPI_Fint info) { return MPI_Info_fromint(info); }
static __inline MPI_Fint MPI_Message_c2f(MPI_Message message) { return MPI_Message_toint(message); }
static __inline MPI_Message MPI_Message_f2c(MPI_Fint message) { return MPI_Message_fromint(message); }
static __inline MPI_Fint MPI_Op_c2f(MPI_Op op) { return MPI_Op_toint(op); }
static __inline MPI_Op MPI_Op_f2c(MPI_Fint op) { return MPI_Op_fromint(op); }
static __inline MPI_Fint MPI_Request_c2f(MPI_Request request) { return MPI_Request_toint(request); }
static __inline MPI_Request MPI_Request_f2c(MPI_Fint request) { return MPI_Request_fromint(request); }
static __inline MPI_Fint MPI_Session_c2f(MPI_Session session) { return MPI_Session_toint(session); }
static __inline MPI_Session MPI_Session_f2c(MPI_Fint session) { return MPI_Session_fromint(session); }
static __inline MPI_Fint MPI_Type_c2f(MPI_Datatype datatype) { return MPI_Type_toint(datatype); }
static __inline MPI_Datatype MPI_Type_f2c(MPI_Fint datatype) { return MPI_Type_fromint(datatype); }
static __inline MPI_Fint MPI_Win_c2f(MPI_Win win) { return MPI_Win_toint(win); }
static __inline MPI_Win MPI_Win_f2c(MPI_Fint win) { return MPI_Win_fromint(win); }

/* Statuses. MPI_ERR_ARG: one of the statuses is MPI_STATUS_IGNORE or its like. */
static __inline int MPI_Status_c2f(const MPI_Status* c_status, MPI_Fint* f_status) {
  int i;
  if (c_status == MPI_STATUS_IGNORE || f_status == MPI_F_STATUS_IGNORE) return MPI_ERR_ARG;
  f_status[MPI_F_SOURCE] = c_status->MPI_SOURCE;
  f_status[MPI_F_TAG] = c_status->MPI_TAG;
  f_status[MPI_F_ERROR] = c_status->MPI_ERROR;
  for (i = 3; i < MPI_F_STATUS_SIZE; ++i) f_status[i] = c_status->MPI_internal[i - 3];
  return MPI_SUCCESS;
}
static __inline int MPI_Status_f2c(const MPI_Fint* f_status, MPI_Status* c_status) {
  int i;
  if (c_status == MPI_STATUS_IGNORE || f_status == MPI_F_STATUS_IGNORE) return MPI_ERR_ARG;
  c_status->MPI_SOURCE = f_status[MPI_F_SOURCE];
  c_status->MPI_TAG = f_status[MPI_F_TAG];
  c_status->MPI_ERROR = f_status[MPI_F_ERROR];
  for (i = 3; i < MPI_F_STATUS_SIZE; ++i) c_status->MPI_internal[i - 3] = f_status[i];
  return MPI_SUCCESS;
}
static __inline int MPI_Status_c2f08(const MPI_Status* c_status, MPI_F08_status* f08_status) {
  if (c_status == MPI_STATUS_IGNORE || f08_status == MPI_F08_STATUS_IGNORE) return MPI_ERR_ARG;
  *f08_status = *c_status;
  return MPI_SUCCESS;
}
static __inline int MPI_Status_f082c(const MPI_F08_status* f08_status, MPI_Status* c_status) {
  return MPI_Status_c2f08(f08_status, c_status);
}
static __inline int MPI_Status_f2f08(const MPI_Fint* f_status, MPI_F08_status* f08_status) {
  return MPI_Status_f2c(f_status, f08_status);
}
static __inline int MPI_Status_f082f(const MPI_F08_status* f08_status, MPI_Fint* f_status) {
  return MPI_Status_c2f(f08_status, f_status);
}

/* NOLINTEND */
/* clang-format on */

#endif /* WEFT_MPI_MPI_FORTRAN_H */
