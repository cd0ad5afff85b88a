// Starts the program's main inside the job.
//
// Threads: the PE's, with the GIL.
#pragma once

#include "weft/runtime/work.h"

#include "engine/engine.h"
#include "support/support.h"

namespace weft::python {

// Where main runs, and what ends the job.
enum class Mains : bool {
  kOnPe0,    // it ends the job
  kOnAllPes  // it ends the job by weft.exit()
};

// Starts main from the scheduler, so that all that it does runs inside the job. It must live until the job has ended.
class StartMain final : public runtime::Work {
 public:
  // `result` gets what main returns.
  StartMain(Engine& engine, PyObject* main, Ref& result, Mains mains)
      : runtime::Work(&StartMain::turn), engine_(engine), main_(main), result_(result), mains_(mains) {}

  // After losses, a main on PE 0 begins when the copies of the protected state are there again.
  void post();

 private:
  static void turn(runtime::Work* self, runtime::Runtime&, runtime::WorkAction action);
  void start();
  Ref after_function(Ref returned);

  Engine& engine_;
  PyObject* main_;
  Ref& result_;
  Mains mains_;
};

}  // namespace weft::python
