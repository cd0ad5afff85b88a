// A job on this PE, from start to end: finds the other PEs, makes memory, machine, runtime and models, runs,
// and reports how it ended. weft::run is all that a program needs; the Python package uses Job itself.
#pragma once

#include <functional>
#include <memory>

#include "weft/runtime/runtime.h"

namespace weft::job {

// Installs models besides Weft's own, with Runtime::install(); the same on every PE.
using InstallModels = std::function<void(runtime::Runtime&)>;

class Job {
 public:
  // Collective over all PEs. Throws Error if the PEs cannot find or reach one another, run different programs
  // or versions of Weft, or if a setting in the environment has a value that its model does not know.
  explicit Job(const InstallModels& more_models = {});
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  runtime::Runtime& runtime();
  // The PEs were started together, by somebody who says why when they end before they are done.
  bool has_launcher() const;

  // Runs the scheduler until the job ends, and ends it on all PEs in good order; what failed goes to stderr.
  // Returns the exit code for this process. Call once.
  int run();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// Starts `main` on PE 0 and runs the job; it ends with code 0 when main does, or as Runtime::exit says. An
// exception that leaves main, or an entry method that nobody awaits, ends it with code 1 on every PE.
int run(int argc, char** argv, std::function<runtime::Task<>(runtime::Runtime&)> main,
        const InstallModels& more_models = {});

}  // namespace weft::job
