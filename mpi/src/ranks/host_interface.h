// Between libmpi_abi.so.1 and the program weft-mpi-host (mpi/host), which runs several ranks of an MPI program in one process.
//
// The host makes one copy of the program per rank. The library runs each copy's main() as a user-level thread.
// This header is C, because the two are separate files: the library exports these names beside those of MPI.
//
// Order of calls, all of them on the thread that will call MPI, and before any call of MPI:
//   1. The host calls weft_mpi_host_join() once, and weft_mpi_host_agree() once.
//   2. It calls weft_mpi_host_run() once.
//   3. The library calls run_rank() once for each rank of this PE, in the order of their numbers, on a stack of the rank's own.
//   4. When each of these ranks has ended, weft_mpi_host_run() returns.
//
// A rank ends when run_rank() returns, or when it calls weft_mpi_host_exit_rank(). MPI_Init starts the job when the first rank
// of the process calls it. If no rank calls it, there is no job.
#pragma once

#include <stddef.h>  // NOLINT(modernize-deprecated-headers): a header of C
#include <stdint.h>  // NOLINT(modernize-deprecated-headers)

#ifdef __cplusplus
extern "C" {
#endif

// Changes with each change of this header. weft_mpi_host_run() refuses a program that has another one.
#define WEFT_MPI_HOST_REVISION 6

// Whole pages of the memory of a rank.
typedef struct weft_mpi_host_range {  // NOLINT(modernize-use-using)
  void* begin;
  size_t size_bytes;
} weft_mpi_host_range;
#define WEFT_MPI_HOST_MOST_RANGES 8

typedef struct weft_mpi_host_place {  // NOLINT(modernize-use-using)
  int pe;
  int num_pes;
} weft_mpi_host_place;

struct weft_mpi_host_moves;

// The program's runtime of OpenMP. It keeps its state for the thread, on which other ranks run while one waits.
typedef struct weft_mpi_host_openmp {  // NOLINT(modernize-use-using)
  // omp_get_level(), and omp_get_active_level(), which does not count regions of one thread.
  int (*level)(void);         // NOLINT(modernize-redundant-void-arg): a header of C
  int (*active_level)(void);  // NOLINT(modernize-redundant-void-arg)
  // The rank that runs is about to wait in a parallel region of one thread: takes the state of the thread away, which then is in no
  // region. Returns the state, or null, without effect, if the runtime does not allow it.
  void* (*put_aside)(void* context);
  // The rank goes on: gives the thread its state again.
  void (*take_back)(void* context, void* state);
} weft_mpi_host_openmp;

typedef struct weft_mpi_host_program {  // NOLINT(modernize-use-using)
  int revision;                         // WEFT_MPI_HOST_REVISION
  // The place of this process: that of weft_mpi_host_join(). The job must agree, or MPI_Init fails.
  int pe;
  int num_pes;
  // The number of ranks in MPI_COMM_WORLD, and the PE of each: num_ranks numbers from 0 to num_pes - 1. Each PE has at
  // least one rank. The host has checked all this. The array stays as it is until weft_mpi_host_run() returns.
  int num_ranks;
  const int* pe_of_rank;
  // The size of a rank's stack in bytes, without its guard page. A multiple of the page size.
  size_t stack_size_bytes;
  // Runs a rank from its begin to its end and returns its exit code, 0 to 255. It does not throw. Calls of exit() in the
  // program do not return through it but call weft_mpi_host_exit_rank().
  int (*run_rank)(void* context, int rank);
  // The lowest address of the rank's stack, which has stack_size_bytes and a page without access below it. The memory is the
  // host's. Null instead of a function: the library allocates the stacks.
  void* (*stack_of_rank)(void* context, int rank);

  // Null if the program uses no OpenMP.
  const struct weft_mpi_host_openmp* openmp;

  // --- Ranks that move to another process. Null: ranks cannot move, and the other members of this part are not read.
  const struct weft_mpi_host_moves* moves;
  void* context;
} weft_mpi_host_program;

// Memory of ranks has the same address in every process of the job. A rank moves while it waits in a call of MPI. The library sends the
// ranges of its memory to a process with an equal `fingerprint`, which writes them to the same addresses.
typedef struct weft_mpi_host_moves {  // NOLINT(modernize-use-using)
  // A fingerprint of the addresses of all libraries and functions in this process, and of the program. Memory of a rank refers to them.
  uint64_t fingerprint;
  // Why no rank of this process can move; null if they can.
  const char* obstacle;
  // Why this rank cannot move now; null if it can. The text is valid until the next call.
  const char* (*obstacle_of_rank)(void* context, int rank);
  // Stores the ranges that the rank may have written, and returns how many there are. `stack`: the lowest address of its stack that is
  // in use.
  int (*ranges_of_rank)(void* context, int rank, const void* stack, weft_mpi_host_range* ranges);
  // Makes these ranges of a rank writable that arrives. Returns null, or what is wrong with them.
  const char* (*receive_rank)(void* context, int rank, const weft_mpi_host_range* ranges, int num_ranges);
  // The ranges have been written. The rank may run.
  void (*rank_arrived)(void* context, int rank);
  // The rank has been sent. Frees its memory.
  void (*rank_left)(void* context, int rank);
} weft_mpi_host_moves;

// Finds the launcher of this process, and stores the place of the process in its job. Returns 0. Or says on stderr, once for the job,
// why the processes cannot find one another, and returns the exit code with which this one ends.
int weft_mpi_host_join(weft_mpi_host_place* place);

// Collective: `refusal` is null if this process can run its ranks, else the sentence that says why it cannot. Returns 0 if all
// processes can. Else one of them has printed its sentence, and each ends with the code that this returns.
int weft_mpi_host_agree(const char* refusal);

// Runs the ranks of this PE to their ends. Returns 0, or the exit code of the first rank that ended with another one. Says an
// error of its own on stderr and returns 1.
int weft_mpi_host_run(const weft_mpi_host_program* program);

// The rank whose stack runs; -1 on any other stack, for example on that of a thread which the program has made.
int weft_mpi_host_current_rank(void);

// The rank whose program runs, on its own stack or in a function of the program that the library calls elsewhere. -1 while a call
// of MPI runs, and on threads that the program has made. Memory that is allocated now belongs to that rank.
int weft_mpi_host_program_rank(void);

// Ends the rank that runs. Its stack is abandoned: no destructor and no exception handler of its frames runs. The host has
// run the atexit handlers of the rank's copy before. REQUIRES: weft_mpi_host_current_rank() >= 0.
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void weft_mpi_host_exit_rank(int code);

// The library promises about switches between ranks:
// - Each rank has exception globals of its own (__cxa_get_globals() of the C++ runtime), so that a rank may wait inside a
//   catch block.
// - errno and the floating-point environment have the value after a call of MPI that they had before, or that the call sets.
// The host promises: libc's `environ`, the state of getopt(), rand() and strtok() need no switch; mpi/host replaces these
// functions for the copies.

#ifdef __cplusplus
}
#endif
