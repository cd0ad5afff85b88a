// The start and the end of MPI in this process.
#pragma once

#include "job/launch.h"
#include "models/mpi/moving/moving_objects.h"
#include "models/mpi/objects/error.h"
#include "ranks/hosted_ranks.h"

namespace weft::mpi {

// Asks the launcher to start a job, see job::Job::start_job(). Throws Error if it cannot be asked.
void start_job(const std::string& request);

enum class Starter { kWorld, kSession };

// The state of MPI that a rank keeps on its stack while it moves.
struct KeptState {
  int num_users = 0;
  PackedObjects objects;
};

// The rank gives up its messages and its objects, and gets others at the same addresses, maybe in another process.
// REQUIRES: obstacle_of_objects() has found none, and the rank has no requests, sessions, windows and files.
KeptState pause_mpi();
void continue_mpi(const KeptState& kept);

// The runtime of this PE. REQUIRES: there is a job.
runtime::Runtime& job_runtime();

// Starts MPI unless it runs. MPI_Init and each session do so once. `wanted_level`: of threads; the program gets thread_level().
Error start_mpi(Starter starter, int wanted_level);
// Undoes it. The job ends with MPI_Finalize, or, if a program has had sessions, with the process.
Error end_mpi(Starter starter);

// Whether a process of a job has forked this one. MPI has ended in it, and MPI_Finalize and MPI_Session_finalize do nothing.
bool is_forked_child();
// Whether this is the thread that called MPI_Init, or that opened the first session.
bool is_main_thread();

// MPI_THREAD_MULTIPLE if the program has asked for it, else MPI_THREAD_SERIALIZED. MPI_THREAD_FUNNELED for ranks that share a process:
// only the thread that runs them may call MPI.
int thread_level();

// weft-mpi-host joins the launch, of which the job is made. Throws Error, as job::Launch::join().
void join_launch();
// REQUIRES: join_launch(), and no job.
job::Launch& launch();
// The process ends with that code. If no rank has made a job of the launch, the launcher learns of it here.
void leave_launch(int exit_code);

// On the main stack, before ranks run. In a launch that has begun again it makes the job, and the ranks of the protected state come, if there
// is one. Does nothing in others.
Error resume_job();
// Whether the job begins again when it loses a PE. REQUIRES: there is a job.
bool job_can_begin_again();
// Does not return if the launcher has told this process that the job begins again, or goes on without it. REQUIRES: the job has ended or there
// is none.
void begin_again_if_told();

// How MPI takes part in the life of the ranks of a process.
HostedRanks::Hooks hosted_rank_hooks();

}  // namespace weft::mpi
