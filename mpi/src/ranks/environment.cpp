#include "ranks/environment.h"

#include <pthread.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/chare/checkpoint.h"
#include "weft/job/job.h"
#include "weft/mpi/mpi.h"

#include "base/format.h"
#include "entry/python_interpreter.h"
#include "machine/calling_threads.h"
#include "machine/links/links.h"
#include "models/mpi/collective/data_movement.h"
#include "models/mpi/collective/team_collectives.h"
#include "models/mpi/communicators/communicator.h"
#include "models/mpi/connected/connecting.h"
#include "models/mpi/process.h"
#include "models/mpi/virtual_ranks/running_code.h"
#include "ranks/rank_moves.h"
#include "ranks/rank_placement.h"
#include "ranks/reported_calls.h"
#include "streams/stream_communicators.h"

namespace weft::mpi {

namespace {

// The job of this process, which all ranks in it share.
struct RunningJob {
  std::optional<job::Launch> launch;              // until it becomes the job
  std::optional<job::Incarnations> incarnations;  // of ranks that share processes
  std::unique_ptr<job::Job> job;
  std::vector<std::unique_ptr<Process>> processes;  // of the ranks that have started MPI
  std::optional<ReportedCalls> reported_calls;
  pthread_t main_thread = pthread_self();
  // How the process ends alone, before the job and after it.
  void (*end_process)(const std::string& sentence, int status) = nullptr;
  // Whether a process of the job has forked this one, to which the job does not belong.
  bool is_forked_child = false;
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

// Runs in each process that this one forks. There MPI has ended, so what programs and mpi4py do at their exit does nothing, and a
// failure ends the child alone.
void leave_job_of_parent() {
  RunningJob& running = running_job();
  if (running.job == nullptr || running.is_forked_child) return;
  running.is_forked_child = true;
  Rank& rank = this_rank();
  if (rank.process != nullptr && rank.process->connections != nullptr) machine::close_links_after_fork();
  rank.phase = Rank::Phase::kAfter;
  rank.has_left_job = true;
  rank.world = nullptr;
  rank.self = nullptr;
  rank.process = nullptr;
  if (running.end_process != nullptr) rank.end_job = running.end_process;
  RunningCode::leave_lock_of_parent();
}

// A rank that has ended, or ends, without its part in MPI leaves others waiting.
[[noreturn]] void abort_for_ended_rank(int number, int code, bool has_started) {
  abort_job(base::format("weft: rank {} ended with code {} {}", number, code,
                         has_started ? "before it called MPI_Finalize"
                                     : "and had not called MPI_Init, but other ranks of its process had"),
            code);
}

// A job of what this process has joined, or joins now.
std::unique_ptr<job::Job> new_job(const job::InstallModels& models) {
  std::optional<job::Launch>& launch = running_job().launch;
  job::Launch joined = launch.has_value() ? std::move(*launch) : job::Launch::join();
  launch.reset();
  joined.expect_calls_of(machine::CallingThreads::kSeveral);
  if (!running_job().incarnations) return std::make_unique<job::Job>(models, std::move(joined));
  return std::make_unique<job::Job>(models, std::move(joined), *running_job().incarnations);
}

// Other launchers than `weft run` pass the setting to a program that they start as it is.
void check_no_ranks_were_asked_for(int num_pes) {
  const char* const text = std::getenv("WEFT_MPI_RANKS");
  if (text == nullptr || *text == '\0' || text == std::to_string(num_pes)) return;
  throw base::Error(
      base::StatusCode::kInvalidArgument,
      base::format("WEFT_MPI_RANKS is '{}', and the {} processes of this job have one rank each. Start `weft "
                   "ranks {} program` in place of the program, or unset the variable",
                   text, num_pes, text));
}

// The launcher or another process has printed the reason, and the job ends.
[[noreturn]] void end_because_another_did() {
  begin_again_if_told();
  std::fflush(nullptr);
  std::_Exit(EXIT_FAILURE);
}

// Makes the job. All processes do so together.
Error make_job() {
  RunningJob& running = running_job();
  HostedRanks* const hosted = HostedRanks::current();
  try {
    running.job = new_job([hosted](runtime::Runtime& runtime) {
      Mpi& model = runtime.install<Mpi>();
      if (hosted == nullptr) return check_no_ranks_were_asked_for(runtime.num_pes());
      if (runtime.num_pes() != hosted->map().num_pes() || runtime.pe() != hosted->pe()) {
        throw base::Error(
            base::StatusCode::kInvalidArgument,
            base::format(
                "this process was to be PE {} of {}, and is PE {} of {}; start the program with `weft "
                "run --ranks` or `weft ranks`",
                hosted->pe(), hosted->map().num_pes(), runtime.pe(), runtime.num_pes()));
      }
      model.place_ranks(hosted->map());
    });
  } catch (const base::Error& error) {
    if (error.code() == base::StatusCode::kCancelled) end_because_another_did();
    return {MPI_ERR_OTHER, error.what()};
  }
  static const int at_fork = pthread_atfork(nullptr, nullptr, &leave_job_of_parent);
  if (at_fork != 0) return {MPI_ERR_NO_MEM, "the memory of this process is exhausted"};
  if (hosted != nullptr && running.job->runtime().model<Mpi>().survival().is_on()) {
    abort_job(
        "weft: --on-loss raise needs a process for each rank, and this job has several ranks in a process; "
        "leave out --ranks, or --on-loss",
        1);
  }
  if (hosted == nullptr) running.job->outlive_losses(true);
  running.job->watch_launcher();
  if (hosted != nullptr) hosted->measure_loads(balances_loads());
  running.main_thread = pthread_self();
  if (hosted == nullptr) return {};
  runtime::Runtime& runtime = running.job->runtime();
  RankMoves::begin(*hosted, runtime, runtime.model<Mpi>().engines());  // other PEs may be in a move earlier
  if (chare::recoveries(runtime) > 0 && !RankMoves::of_this_pe().restore()) end_failed_job();
  hosted->enter_job(runtime);
  for (const HostedRank* const rank : hosted->ranks()) {
    if (rank->has_ended()) abort_for_ended_rank(rank->number(), rank->exit_code(), false);
  }
  return {};
}

Error make_job_for(HostedRanks* hosted) {
  if (hosted == nullptr) return make_job();
  Error error;
  hosted->call_on_main_stack([&] { error = make_job(); });
  return error;
}

// Gives the rank its messages and its communicators.
void join_job(Rank& rank) {
  RunningJob& running = running_job();
  runtime::Runtime& runtime = running.job->runtime();
  const HostedRank* const hosted = HostedRanks::running();
  RankEngines& engines = runtime.model<Mpi>().engines();
  PointToPoint& engine = hosted == nullptr ? *engines.engines().front() : *engines.find(hosted->number());
  engine.set_virtual_rank(VirtualRank::current());
  running.processes.push_back(std::make_unique<Process>(runtime, engine, &end_failed_job));
  rank.process = running.processes.back().get();
  rank.number = engine.rank();
  Outsiders& outsiders = engine.shared().outsiders();
  if (!outsiders.are_known()) outsiders.set_job(machine::job_number(running.job->unique_name()));
  running.end_process = std::exchange(rank.end_job, &abort_job);
  rank.predefined_attributes.universe_size = engine.num_ranks();
  rank.predefined_attributes.survives_losses = runtime.model<Mpi>().survival().is_on() ? 1 : 0;
  // `weft run` sets it in a job of several programs.
  if (const char* const program = std::getenv("WEFT_PROGRAM"))
    rank.predefined_attributes.app_number = static_cast<int>(std::strtol(program, nullptr, 10));
}

// MPI_COMM_WORLD for the end of MPI. The program may have revoked its own.
Ref<Communicator> world_of_end(const Communicator& world) {
  auto made = Ref<Communicator>::adopt(new Communicator(
      world.engine(), kEndContext, {world.group(), world.rank(), nullptr}, 0, world.error_handler()));
  made->set_name(world.name());
  return made;
}

// Returns at rank 0 when all others have sent their last message, and no longer wait for one.
void wait_for_last_messages(Process& process) {
  const Ref<Communicator> world = world_of_end(*process.world());
  process.run(barrier_in_teams(world->next_collective_contexts().local));
  wait_for_streams(process);
  const CollectiveContext context = world->next_collective_contexts().local;
  if (context.rank() == 0) {
    process.run(gather(context, 0, OwnView{{}, true}, Views(static_cast<std::size_t>(context.size()))));
  } else {
    (void)context.send(0, {});  // is sent while the job ends
  }
}

// All ranks call it. Afterwards no message is under way, unless ranks may be lost: then messages for this rank are still taken.
void leave_messages() {
  Rank& rank = this_rank();
  Survival& survival = running_job().job->runtime().model<Mpi>().survival();
  if (survival.is_on()) {
    wait_for_streams(*rank.process);
  } else {
    wait_for_last_messages(*rank.process);
  }
  if (rank.process->connections != nullptr) rank.process->connections->close();
  rank.world = nullptr;
  rank.self = nullptr;
  rank.process = nullptr;
  rank.has_left_job = true;
  rank.end_job = running_job().end_process;
  if (survival.is_on()) {
    survival.end_job();
  } else if (rank.number == 0) {
    running_job().job->runtime().exit(0);
  }
}

int end_job() {
  HostedRanks* const hosted = HostedRanks::current();
  // Other ranks of the process may still call MPI.
  if (hosted == nullptr) RunningCode::report_calls(nullptr);
  leave_messages();
  return hosted == nullptr ? running_job().job->run() : hosted->leave_job();
}

void end_job_with_process() {
  const LibraryRuns library;
  const Process* const process = this_rank().process;
  if (process != nullptr && process->num_users == 0) end_job();
}

void on_rank_end(HostedRank& hosted, int code) {
  if (running_job().job == nullptr) return;
  Rank& rank = hosted.state();
  if (rank.process != nullptr && rank.process->had_sessions && rank.process->num_users == 0) {
    leave_messages();
    HostedRanks::current()->leave_job_now();
  }
  if (rank.has_left_job) return;
  abort_for_ended_rank(hosted.number(), code, rank.process != nullptr);
}

// `weft run` names the port of the processes that have spawned this job.
Error connect_to_parent(Process& process) {
  const char* const port = std::getenv("WEFT_MPI_PARENT");
  if (port == nullptr || *port == '\0') return {};
  const std::string name(port);
  unsetenv("WEFT_MPI_PARENT");  // programs that this one starts are not spawned
  Ref<Communicator> parent;
  if (Error error = connect(process, {*process.world(), 0}, name, &parent); !error.ok()) return error;
  parent->set_name("MPI_COMM_PARENT");
  process.parent = parent.leave();
  return {};
}

}  // namespace

namespace {

// To the observer of the PE, if it has one.
void report_calls(runtime::Runtime& runtime) {
  if (runtime.observer() == nullptr) return RunningCode::report_calls(nullptr);
  RunningCode::report_calls(&running_job().reported_calls.emplace(*runtime.observer()));
}

// A level that has been granted stays: other threads may call MPI by now.
void grant_threads(Process& process, int wanted_level) {
  if (HostedRanks::current() != nullptr || process.serves_threads()) return;
  RunningCode::use_lock(wanted_level == MPI_THREAD_MULTIPLE);
  if (wanted_level == MPI_THREAD_MULTIPLE) process.serve_threads();
}

}  // namespace

Error start_mpi(Starter starter, int wanted_level) {
  Rank& rank = this_rank();
  if (starter == Starter::kWorld && rank.phase != Rank::Phase::kBefore)
    return {MPI_ERR_OTHER, "MPI_Init has been called already; call it once"};
  if (rank.has_left_job)
    return {MPI_ERR_OTHER, "MPI has ended in this process; open the session before MPI_Finalize"};
  HostedRanks* const hosted = HostedRanks::current();
  if (running_job().job == nullptr) {
    if (Error error = make_job_for(hosted); !error.ok()) return error;
  }
  if (rank.process == nullptr) join_job(rank);
  grant_threads(*rank.process, wanted_level);
  report_calls(rank.process->runtime());
  ++rank.process->num_users;
  if (starter == Starter::kWorld) {
    running_job().main_thread = pthread_self();  // another one may have opened a session before
    rank.phase = Rank::Phase::kRunning;
    rank.world = rank.process->world().get();
    rank.self = rank.process->self().get();
    if (hosted == nullptr) watch_exceptions_of_python();
    if (Error error = connect_to_parent(*rank.process); !error.ok()) return error;
  } else if (!std::exchange(rank.process->had_sessions, true) && hosted == nullptr) {
    std::atexit(&end_job_with_process);
  }
  return {};
}

namespace {

// All ranks of the job wait for one that moves, so it cannot go on after an error.
template <class Step>
void move_objects(const Step& step) {
  std::string reason;
  try {
    return step();
  } catch (const std::bad_alloc&) {
    reason = "its memory is full";
  } catch (const std::exception& error) {
    reason = error.what();
  }
  const Rank& rank = this_rank();
  rank.end_job(base::format("weft: rank {}: its objects of MPI cannot move: {}", rank.number, reason), 1);
}

}  // namespace

KeptState pause_mpi() {
  Rank& rank = this_rank();
  KeptState kept{.num_users = rank.process->num_users, .objects = {}};
  move_objects([&] { kept.objects = pack_objects(*VirtualRank::current()); });
  rank.world = nullptr;
  rank.self = nullptr;
  std::erase_if(running_job().processes, [&](const auto& process) { return process.get() == rank.process; });
  rank.process = nullptr;
  return kept;
}

void continue_mpi(const KeptState& kept) {
  Rank& rank = this_rank();
  if (running_job().end_process != nullptr) rank.end_job = running_job().end_process;
  join_job(rank);
  rank.process->num_users = kept.num_users;
  rank.phase = Rank::Phase::kRunning;
  rank.world = rank.process->world().get();
  rank.self = rank.process->self().get();
  if (!running_job().reported_calls) report_calls(rank.process->runtime());
  move_objects([&] { unpack_objects(*VirtualRank::current(), kept.objects); });
}

void join_launch() {
  running_job().incarnations.emplace(job::Incarnations::Way::kInNewProgram);
  running_job().launch.emplace(job::Launch::join(true));
}
job::Launch& launch() { return *running_job().launch; }
void leave_launch(int exit_code) {
  if (running_job().launch.has_value()) running_job().launch->leave(exit_code);
}

void begin_again_if_told() {
  if (!running_job().incarnations) return;
  running_job().launch.reset();
  running_job().incarnations->begin_in_new_program();
}

Error resume_job() {
  const std::optional<job::Launch>& launch = running_job().launch;
  return launch && launch->incarnation() > 0 ? make_job() : Error();
}
bool job_can_begin_again() { return running_job().job->can_begin_again(); }

runtime::Runtime& job_runtime() { return running_job().job->runtime(); }

Error end_mpi(Starter starter) {
  Rank& rank = this_rank();
  Process& process = *rank.process;
  if (starter == Starter::kWorld) {
    rank.phase = Rank::Phase::kAfter;
    rank.world = nullptr;
    rank.self = nullptr;
  }
  --process.num_users;
  if (starter == Starter::kWorld && !process.had_sessions) {
    if (end_job() != 0) return {MPI_ERR_OTHER, "the job did not end well"};
  }
  return {};
}

bool is_forked_child() { return running_job().is_forked_child; }

bool is_main_thread() { return pthread_equal(pthread_self(), running_job().main_thread) != 0; }

void start_job(const std::string& request) { running_job().job->start_job(request); }

int thread_level() {
  if (HostedRanks::current() != nullptr) return MPI_THREAD_FUNNELED;
  const Process* const process = this_rank().process;
  return process != nullptr && process->serves_threads() ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED;
}

HostedRanks::Hooks hosted_rank_hooks() {
  return {.finish_job =
              [] {
                const int code = running_job().job->run();
                begin_again_if_told();
                return code;
              },
          .fail_job = [] { end_failed_job(); },
          .rank_ends = &on_rank_end};
}

}  // namespace weft::mpi
