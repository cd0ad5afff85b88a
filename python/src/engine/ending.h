// Python exceptions that end the job.
#pragma once

#include <string>

#include "engine/engine.h"

namespace weft::python {

// Handles SystemExit and KeyboardInterrupt that left user code, and the exception of SIGTERM's handler: ends the job with their
// code, clears the error indicator and returns true. For any other exception it does nothing and returns false.
bool ended_by_exception(Engine& engine);
// The same for KeyboardInterrupt and the exception of SIGTERM's handler alone.
bool interrupted_by_exception(Engine& engine);

// Ends the job with Python's current exception, which is cleared: SystemExit with its code, any other as an
// error that names `where`, such as "the callback of a future".
void end_by_exception(Engine& engine, const std::string& where);

// Ends the job with Python's current exception, which has left main and is cleared. weft.run raises it on this PE, unless `is_one_of_many`
// and the job ends already: then another main has raised the reason, and this exception may follow from the end.
void end_by_exception_of_main(Engine& engine, bool is_one_of_many);

// Adds weft._core._Terminated, which the handler of SIGTERM raises.
void init_ending(PyObject* module);

// Ends this process if it is a child that the user code forked: as the interpreter would, with the current
// exception and exit functions, but without the job's end, which is the parent's. Called wherever user code
// returns to the scheduler.
[[noreturn]] void end_forked_child();
inline void end_if_forked() {
  if (Engine::in_forked_child()) [[unlikely]]
    end_forked_child();
}

}  // namespace weft::python
