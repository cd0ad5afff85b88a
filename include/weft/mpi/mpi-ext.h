/* Ranks that are lost, with the names of ULFM (MPIX_): under `weft run --on-loss raise` a lost rank does not end the job. Operations
   that need the rank fail with MPIX_ERR_PROC_FAILED, through the error handler of their communicator. See docs/mpi.md, "Ranks that are
   lost".

   A program that may run with other MPI libraries tests for the macro MPIX_ERR_PROC_FAILED.
*/
#ifndef WEFT_MPI_EXT_H
#define WEFT_MPI_EXT_H

#include "mpi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- Error classes */

/* A process that the operation needs is lost. */
#define MPIX_ERR_PROC_FAILED 16001
/* A receive from MPI_ANY_SOURCE is pending, and a process that may have been the source is lost. After MPIX_Comm_failure_ack the
   request can be waited for again. Calls that have no request fail with MPIX_ERR_PROC_FAILED instead. */
#define MPIX_ERR_PROC_FAILED_PENDING 16002
/* The communicator is revoked. */
#define MPIX_ERR_REVOKED 16003

/* An attribute key of all communicators: the value is an int, 1 if lost ranks do not end the job, else 0. */
#define MPIX_FT 600

/* --- Which ranks are lost. These calls are local. */

/* Acknowledges all losses in `comm` that this rank knows of. Receives from MPI_ANY_SOURCE can complete again, until the next loss. */
int MPIX_Comm_failure_ack(MPI_Comm comm);
/* The group of the ranks that are acknowledged, in the order in which this rank was told. The caller frees it. */
int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group* failedgrp);
/* The group of all lost ranks that this rank knows of, in the same order. The caller frees it. */
int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group* failedgrp);
/* Acknowledges the first `num_to_ack` of MPIX_Comm_get_failed(). `num_acked`: how many are acknowledged then. */
int MPIX_Comm_ack_failed(MPI_Comm comm, int num_to_ack, int* num_acked);

/* --- Going on together */

/* All pending and later operations of `comm` fail with MPIX_ERR_REVOKED at all ranks, but for the calls of this header. The call returns
   at once. */
int MPIX_Comm_revoke(MPI_Comm comm);
int MPIX_Comm_is_revoked(MPI_Comm comm, int* flag);

/* All living ranks call it. The new communicator has those that the callers do not know as lost, in their old order. All get the same one,
   also if ranks are lost during the call. */
int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* newcomm);
/* `newcomm` is written when the request is complete. */
int MPIX_Comm_ishrink(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request);

/* All living ranks call it. `flag` becomes the bitwise AND of their flags, the same for all, also if ranks are lost during the call. The
   call returns MPIX_ERR_PROC_FAILED at all of them if a rank is lost that one of them has not acknowledged; `flag` is valid then too. */
int MPIX_Comm_agree(MPI_Comm comm, int* flag);
/* `flag` is read at once, and written when the request is complete. */
int MPIX_Comm_iagree(MPI_Comm comm, int* flag, MPI_Request* request);

#ifdef __cplusplus
}
#endif

#endif
