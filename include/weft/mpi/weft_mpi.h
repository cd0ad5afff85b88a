/* What Weft's MPI library has beyond the standard: ranks that move to other PEs and outlive their processes. See docs/virtual-ranks.md.

   A program that may run with other MPI libraries tests whether they have a function:

       #pragma weak Weft_migrate
       if (Weft_migrate) Weft_migrate(pe);
*/
#ifndef WEFT_MPI_H
#define WEFT_MPI_H

#ifdef __cplusplus
extern "C" {
#endif

/* All ranks of MPI_COMM_WORLD call it together. Each one names its PE, 0 to Weft_num_pes() - 1, and goes on there. No rank moves if
   one of them cannot: all calls then return MPI_ERR_OTHER, or MPI_ERR_ARG for a PE that does not exist, through the error handler of
   MPI_COMM_WORLD. The sentence of MPI_ERRORS_ARE_FATAL says why; with a handler that returns, rank 0 prints it on stderr, once for
   each reason. Each PE keeps at least one rank. */
int Weft_migrate(int pe);

/* All ranks of MPI_COMM_WORLD call it together. The strategy of `weft run --lb NAME` decides from the time that each rank has run
   since the last call, and ranks move. Does nothing without --lb, and if each PE has one rank. Errors are those of
   Weft_migrate(). */
int Weft_load_balance(void);

/* All ranks of MPI_COMM_WORLD call it together. Protects the state of all ranks in the memory of the job, if `weft run --ranks N --on-loss
   restart` or `--on-loss shrink` has started it. If processes are lost afterwards, all ranks go on from their last complete call, which
   then returns again: with the variables, the stack, the memory and the MPI objects of the first time, maybe on another PE.
   `recoveries`: gets how often the job has begun again, 0 at first; may be null. Blocks until the state is protected.

   No rank is protected if one of them cannot be: all calls then return MPI_ERR_OTHER, and the state before counts. The reasons, and how they
   are said, are those of Weft_migrate(). In other jobs it does nothing. See docs/virtual-ranks.md. */
int Weft_protect(int* recoveries);

/* The PE on which the caller runs, and the number of PEs. Between MPI_Init and MPI_Finalize; -1 otherwise. */
int Weft_pe(void);
int Weft_num_pes(void);

/* Registers a function of the rank for what does not move, such as open files and device memory. Weft_migrate() and
   Weft_load_balance() call it on the rank's stack: with WEFT_MPI_LEAVES before the rank moves, and with WEFT_MPI_ARRIVED when it is
   on its new PE. It is not called for ranks that shall stay. Weft_protect() calls it with WEFT_MPI_ARRIVED when it returns again. If a move fails after WEFT_MPI_LEAVES, because a rank has messages that
   it has not received, WEFT_MPI_ARRIVED follows on the old PE. Functions are called in the order of their registration, and may make no
   call of MPI. A rank may register 32. */
enum { WEFT_MPI_LEAVES = 1, WEFT_MPI_ARRIVED = 2 };
typedef void (*Weft_move_function)(int event, void* data);
int Weft_register_move_function(Weft_move_function function, void* data);

#ifdef __cplusplus
}
#endif

#endif
