#include "environment.h"

#include <pthread.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "weft/base/error.h"
#include "weft/job/job.h"
#include "weft/mpi/mpi.h"

#include "attributes.h"
#include "base/format.h"
#include "communication.h"
#include "entry.h"
#include "models/mpi/collective/data_movement.h"
#include "models/mpi/process.h"

namespace weft::mpi {

namespace {

// The job of this process, which all ranks in it share.
struct RunningJob {
  std::unique_ptr<job::Job> job;
  std::unique_ptr<Process> process;
  pthread_t main_thread = pthread_self();
  // How the process ends alone, before the job and after it.
  void (*end_process)(const std::string& sentence, int status) = nullptr;
  bool had_sessions = false;
};

RunningJob& running_job() {
  // Never destroyed: objects of the program may refer to the PE's memory.
  static RunningJob* const running = new RunningJob;
  return *running;
}

[[noreturn]] void abort_job(const std::string& sentence, int status) {
  running_job().job->abort(status == 0 ? 1 : status, sentence);
}

// The runtime of this PE has failed, or the launcher ends the job.
[[noreturn]] void end_failed_job() {
  const std::string& failure = running_job().job->runtime().failure();
  abort_job(failure.empty() ? "weft: the job ended while a rank waited in a call of MPI" : "weft: " + failure,
            1);
}

void end_job_with_process();

// Makes the job. All processes do so together.
Error make_job() {
  RunningJob& running = running_job();
  try {
    running.job = std::make_unique<job::Job>([](runtime::Runtime& runtime) { runtime.install<Mpi>(); });
  } catch (const base::Error& error) {
    return {MPI_ERR_OTHER, error.what()};
  }
  running.job->watch_launcher();
  runtime::Runtime& runtime = running.job->runtime();
  running.process = std::make_unique<Process>(runtime, &end_failed_job);
  running.main_thread = pthread_self();
  Rank& rank = this_rank();
  rank.process = running.process.get();
  rank.number = runtime.pe();
  running.end_process = std::exchange(rank.end_job, &abort_job);
  rank.predefined_attributes.universe_size = runtime.num_pes();
  return {};
}

// Returns at PE 0 when all others have sent their last message, and no longer wait for one.
void wait_for_last_messages(Process& process) {
  process.run(wait_for_all(process.world()->next_circles().local));
  const Circle circle = process.world()->next_circles().local;
  if (circle.rank() == 0) {
    process.run(gather(circle, 0, OwnView{{}, true}, Views(static_cast<std::size_t>(circle.size()))));
  } else {
    (void)circle.send(0, {});  // is sent while the job ends
  }
}

// All processes call it. Afterwards no message is under way.
int end_job() {
  RunningJob& running = running_job();
  Rank& rank = this_rank();
  wait_for_last_messages(*running.process);
  rank.world = nullptr;
  rank.self = nullptr;
  rank.process = nullptr;
  if (running.job->runtime().pe() == 0) running.job->runtime().exit(0);
  const int code = running.job->run();
  rank.end_job = running.end_process;
  return code;
}

void end_job_with_process() {
  if (this_rank().process != nullptr && running_job().process->num_users == 0) end_job();
}

}  // namespace

Error start_mpi(Starter starter) {
  Rank& rank = this_rank();
  RunningJob& running = running_job();
  if (starter == Starter::kWorld && rank.phase != Rank::Phase::kBefore)
    return {MPI_ERR_OTHER, "MPI_Init has been called already; call it once"};
  if (running.job == nullptr) {
    if (Error error = make_job(); !error.ok()) return error;
  } else if (rank.process == nullptr) {
    return {MPI_ERR_OTHER, "MPI has ended in this process; open the session before MPI_Finalize"};
  }
  ++rank.process->num_users;
  if (starter == Starter::kWorld) {
    rank.phase = Rank::Phase::kRunning;
    rank.world = rank.process->world().get();
    rank.self = rank.process->self().get();
  } else if (!std::exchange(running.had_sessions, true)) {
    std::atexit(&end_job_with_process);
  }
  return {};
}

Error end_mpi(Starter starter) {
  Rank& rank = this_rank();
  Process& process = *rank.process;
  if (starter == Starter::kWorld) {
    rank.phase = Rank::Phase::kAfter;
    rank.world = nullptr;
    rank.self = nullptr;
  }
  --process.num_users;
  if (starter == Starter::kWorld && !running_job().had_sessions) {
    if (end_job() != 0) return {MPI_ERR_OTHER, "the job did not end well"};
  }
  return {};
}

namespace {

Error initialize() { return start_mpi(Starter::kWorld); }

Error finalize() {
  Rank& rank = this_rank();
  if (rank.phase != Rank::Phase::kRunning)
    return {MPI_ERR_OTHER, "MPI_Finalize is called once, after MPI_Init"};
  // Attributes of MPI_COMM_SELF go first: programs hang their own cleanup on them.
  if (Error error = remove_attributes(MPI_COMM_SELF, *rank.self); !error.ok()) return error;
  if (Error error = remove_attributes(MPI_COMM_WORLD, *rank.world); !error.ok()) return error;
  return end_mpi(Starter::kWorld);
}

}  // namespace

}  // namespace weft::mpi

using namespace weft::mpi;  // NOLINT(google-build-using-namespace): the entry points are C functions

extern "C" {

int MPI_Init(int* /*argc*/, char*** /*argv*/) { return guarded(__func__, kNoObject, initialize); }
int MPI_Init_thread(int* /*argc*/, char*** /*argv*/, int required, int* provided) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{provided, "provided"}}); !error.ok()) return error;
    if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE)
      return {MPI_ERR_ARG, weft::base::format("there is no thread level {}", required)};
    *provided = MPI_THREAD_SERIALIZED;
    return initialize();
  });
}
int MPI_Finalize(void) { return guarded(__func__, kNoObject, finalize); }

int MPI_Initialized(int* flag) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{flag, "flag"}}); !error.ok()) return error;
    *flag = this_rank().phase != Rank::Phase::kBefore ? 1 : 0;
    return {};
  });
}
int MPI_Finalized(int* flag) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{flag, "flag"}}); !error.ok()) return error;
    *flag = this_rank().phase == Rank::Phase::kAfter ? 1 : 0;
    return {};
  });
}

int MPI_Query_thread(int* provided) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{provided, "provided"}}); !error.ok()) return error;
    *provided = MPI_THREAD_SERIALIZED;
    return check_running();
  });
}
int MPI_Is_thread_main(int* flag) {
  return guarded(__func__, kNoObject, [&]() -> Error {
    if (Error error = require({{flag, "flag"}}); !error.ok()) return error;
    *flag = pthread_equal(pthread_self(), running_job().main_thread) != 0 ? 1 : 0;
    return check_running();
  });
}

int MPI_Abort(MPI_Comm /*comm*/, int errorcode) {
  const Rank& rank = this_rank();
  const std::string sentence =
      weft::base::format("weft: rank {} called MPI_Abort with code {}", rank.number, errorcode);
  rank.end_job(sentence, errorcode);
  return MPI_ERR_INTERN;
}

}  // extern "C"
