// A job that begins again after losses: its incarnations, one after the other (docs/decisions/recovery.md).
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>

#include "weft/base/error.h"
#include "weft/chare/checkpoint.h"
#include "weft/job/job.h"
#include "weft/runtime/task.h"

#include "base/format.h"
#include "checkpoint/protected_state.h"
#include "checkpoint/state_file.h"
#include "job/drain_signal.h"
#include "job/launch.h"
#include "job/new_program.h"
#include "machine/bootstrap/bootstrap.h"
#include "runtime/waits/program_threads.h"

namespace weft::job {

// As they were when the process began.
struct Incarnations::Begin {
  Begin() {
    pthread_sigmask(SIG_SETMASK, nullptr, &signals);
    if (DrainSignal::is_held()) sigdelset(&signals, SIGTERM);
  }
  ~Begin() {
    if (folder >= 0) close(folder);
  }
  Begin(const Begin&) = delete;
  Begin& operator=(const Begin&) = delete;

  int folder = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  sigset_t signals{};
};

Incarnations::Incarnations(Way way)
    : way_(way), state_(std::make_unique<checkpoint_files::ProtectedState>()) {
  if (way == Way::kInPlace) return;
  begin_ = std::make_unique<Begin>();
  base::check(take_handed_over(*state_));
}
Incarnations::~Incarnations() { DrainSignal::give_back(); }

bool Incarnations::begin_again() const { return machine::begins_again() && !machine::leaves_job(); }

bool Incarnations::has_left() const { return machine::leaves_job(); }

void Incarnations::begin_in_new_program() {
  if (has_left()) std::_Exit(EXIT_SUCCESS);
  if (!begin_again()) return;
  // The program that follows has the same process number, and its memory is at the same addresses.
  base::Status status = machine::tell_stopped();
  // The slowest PE computes meanwhile.
  base::Result<int> state = status.ok() ? checkpoint_files::write_state_file(*state_) : status;
  status = state.ok() ? machine::await_all_stopped() : state.status();
  if (has_left()) std::_Exit(EXIT_SUCCESS);
  if (status.ok()) status = start_program_anew(*state, begin_->folder, begin_->signals);
  print_unless_launcher_did(status.code(),
                            base::format("weft: this process cannot begin again: {}\n", status.message()));
  std::_Exit(EXIT_FAILURE);
}

namespace {

int run_incarnation(const std::function<runtime::Task<>(runtime::Runtime&)>& main,
                    const InstallModels& more_models, Incarnations& incarnations) {
  try {
    Job job(more_models, incarnations);
    runtime::Runtime& runtime = job.runtime();
    job.outlive_losses(false);
    if (runtime.pe() == 0) {
      auto main_task = [](runtime::Runtime& rt,
                          const std::function<runtime::Task<>(runtime::Runtime&)>& body) -> runtime::Task<> {
        co_await runtime::yield_now(rt);  // main runs inside the scheduler, like all that it starts
        co_await chare::checkpoint_detail::share_anew(rt);
        co_await body(rt);
        rt.exit(0);
      };
      runtime.spawn(main_task(runtime, main), "main on PE 0");
    }
    const runtime::ThreadActivity threads(runtime);
    return job.run();
  } catch (const base::Error& error) {
    print_unless_launcher_did(error.code(), base::format("weft: {}\n", error.what()));
    return 1;
  }
}

}  // namespace

int run(int argc, char** argv, std::function<runtime::Task<>(runtime::Runtime&)> main,
        const InstallModels& more_models) {
  static_cast<void>(argc);
  static_cast<void>(argv);
  Incarnations incarnations;
  int code = run_incarnation(main, more_models, incarnations);
  while (incarnations.begin_again()) code = run_incarnation(main, more_models, incarnations);
  if (incarnations.has_left())
    std::exit(0);  // the job goes on, so what the program does after it is not for this process
  return code;
}

}  // namespace weft::job
