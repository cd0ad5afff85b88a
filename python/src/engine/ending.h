// Python exceptions that end the job.
#pragma once

#include <string>

#include "engine/engine.h"

namespace weft::python {

// Handles SystemExit and KeyboardInterrupt that left user code: ends the job with their code, clears the error
// indicator and returns true. For any other exception it does nothing and returns false.
bool ended_by_exception(Engine& engine);

// Ends the job with Python's current exception, which is cleared: SystemExit with its code, any other as an
// error that names `where`, such as "the callback of a future".
void end_by_exception(Engine& engine, const std::string& where);

}  // namespace weft::python
