#include "weft/job/pgas_run.h"

#include <string>

#include "weft/base/error.h"
#include "weft/job/job.h"

#include "base/format.h"
#include "job/launch.h"
#include "runtime/waits/program_threads.h"

namespace weft::job {

namespace {

runtime::Task<> run_main(pgas::World& world, const std::function<runtime::Task<>(pgas::World&)>& body) {
  runtime::Runtime& runtime = world.runtime();
  co_await runtime::yield_now(runtime);  // main runs inside the scheduler, like all that it starts
  try {
    co_await body(world);
  } catch (const base::Error& error) {
    // A blocking_barrier() that the end of the job has ended.
    if (error.code() == base::StatusCode::kClosed && runtime.must_end()) co_return;
    throw;
  }
  co_await world.barrier();
  if (runtime.pe() != 0) co_return;
  co_await runtime.quiescence();  // calls under way are run
  runtime.exit(0);
}

}  // namespace

int run_on_all(int argc, char** argv, std::function<runtime::Task<>(pgas::World&)> main) {
  static_cast<void>(argc);
  static_cast<void>(argv);
  try {
    Job job;
    pgas::World& world = pgas::world_of(job.runtime());
    job.runtime().spawn(run_main(world, main), base::format("main on PE {}", job.runtime().pe()));
    const runtime::ThreadActivity threads(job.runtime());
    return job.run();
  } catch (const base::Error& error) {
    print_unless_launcher_did(error.code(), base::format("weft: {}\n", error.what()));
    return 1;
  }
}

}  // namespace weft::job
