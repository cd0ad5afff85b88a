// A job on this PE, from start to end. A Job finds the other PEs, makes memory, machine, runtime and models, runs
// them, and reports how the job ended. Programs call weft::run; the Python package uses Job itself.
//
// Threads: the PE's thread, which makes, runs and destroys the Job.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "weft/runtime/runtime.h"

namespace weft::checkpoint_files {
class ProtectedState;
}

namespace weft::job {

// Installs further models with Runtime::install(). It must install the same models on every PE.
using InstallModels = std::function<void(runtime::Runtime&)>;

class Launch;  // of this process, see src/job/launch.h

// The memory that outlives the incarnations of a job: `weft run --on-loss restart` begins a job again when it has lost PEs, or
// gets another number of them (docs/recovery.md). The program makes Jobs with it, one after the other, while begin_again() is true.
class Incarnations {
 public:
  // How a process that is left begins again: it makes another Job, or it starts its program anew (exec) and hands over what is protected.
  // The latter suits programs whose stacks and libraries refer to the Job that has ended.
  enum class Way { kInPlace, kInNewProgram };

  // kInNewProgram: notes the folder and the signal mask of the process for the programs that follow, and takes what the one before has
  // handed over. Throws Error if that cannot be read.
  explicit Incarnations(Way way = Way::kInPlace);
  ~Incarnations();
  Incarnations(const Incarnations&) = delete;
  Incarnations& operator=(const Incarnations&) = delete;

  // Whether the last Job has ended, or its constructor has thrown, because the job begins again.
  bool begin_again() const;
  // Whether the last Job has ended because the job goes on with fewer PEs, without this process, which is to end with code 0.
  bool has_left() const;

  // If the job begins again, the process starts its program anew with the words and the environment of its begin, or, if the job goes on
  // without it, ends with code 0. Otherwise it returns. All descriptors but the standard ones are closed. REQUIRES: kInNewProgram, and the
  // Job, or the Launch of which none was made, has ended or has been aborted.
  void begin_in_new_program();

 private:
  friend class Job;
  const Way way_;
  std::unique_ptr<checkpoint_files::ProtectedState> state_;
  struct Begin;
  std::unique_ptr<Begin> begin_;  // of kInNewProgram
};

class Job {
 public:
  // Collective: every PE makes its Job, and the constructor waits for the others. Throws Error if
  //   - the PEs cannot find or reach one another,
  //   - they run different programs or versions of Weft, or
  //   - a setting in the environment has a value that its model does not know.
  explicit Job(const InstallModels& more_models = {});
  // Starts the job in a process that has joined its launch before.
  Job(const InstallModels& more_models, Launch&& launch);
  // Makes the next incarnation of the job, in a launch that begins it again after losses. Elsewhere as the first constructor.
  Job(const InstallModels& more_models, Incarnations& incarnations);
  // Both: `launch` has joined with can_begin_again. With Way::kInNewProgram abort() begins the next incarnation if the loss of another PE is
  // the reason.
  Job(const InstallModels& more_models, Launch&& launch, Incarnations& incarnations);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  runtime::Runtime& runtime();
  // Whether the launcher begins the job again when it loses a PE.
  bool can_begin_again() const;
  // Whether a launcher started the PEs. A launcher reports the reason if a PE ends before the job is done.
  bool has_launcher() const;
  // A text that all PEs of the job have and no other job on this host; empty if there is none.
  std::string unique_name() const;
  // Asks the launcher to start another job, see Bootstrap::start_job(). Throws Error if the launcher cannot be asked.
  void start_job(const std::string& request);
  // Makes this PE's own GPU the thread's current device, on which other libraries allocate, unless the thread
  // has a current device already. Prints a warning if it cannot. The constructor has done so if --gpus names
  // the devices or the program contains the CUDA runtime. It costs time and GPU memory: see docs/device-memory.md.
  void make_own_devices_current();

  // See ReportSignal::expect_own_stacks().
  int expect_own_stacks() const;
  // Whether SIGUSR1 asks the job what its PEs wait for: the program has no handler of its own.
  bool has_report_signal() const;
  // For a program that waits with Scheduler::run_until() and calls run() at its end: from now on, the job fails if its
  // launcher has gone. Call once, before the first wait.
  void watch_launcher();
  // From now on this PE outlives the loss of others if its launcher keeps the job then (`weft run --on-loss raise`): see
  // runtime::Losses. `may_lose_pe_0`: of PE 0 too. Until all PEs have called it, a loss ends the job. Call before run() and
  // watch_launcher().
  void outlive_losses(bool may_lose_pe_0);
  // Ends the job on all PEs with that sentence on stderr, and this process with `code`. A process that this one has forked ends
  // alone.
  [[noreturn]] void abort(int code, const std::string& sentence);

  // Runs the scheduler until the job ends on all PEs. Prints errors that ended the job to stderr. Returns the
  // exit code for this process. Call once.
  int run();

 private:
  struct Parts;
  Job(const InstallModels& more_models, Launch&& launch, Incarnations* incarnations);
  void start(const InstallModels& more_models, const Launch& launch);
  // The launcher begins the job again: the process is ready to join it.
  void leave_incarnation();

  std::unique_ptr<Parts> parts_;
};

// Starts `main` on PE 0, runs the job, and returns its exit code:
//   - 0 after main has returned,
//   - the code that Runtime::exit got, or
//   - 1 on every PE after an exception that left main, or an entry method without an awaiting caller.
// Does not return in a process without which the job goes on (docs/recovery.md): it calls std::exit(0).
int run(int argc, char** argv, std::function<runtime::Task<>(runtime::Runtime&)> main,
        const InstallModels& more_models = {});

}  // namespace weft::job
