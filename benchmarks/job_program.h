// The main program of a benchmark whose `measure` runs on PE 0 of a job.
#pragma once

#include "weft/weft.h"

#include "benchmarks/measuring.h"

namespace weft::benchmarks {

inline int run(int argc, char** argv, Task<> (*measure)(Runtime&, const Arguments&)) {
  const Arguments arguments = parse_arguments(argc, argv);
  return weft::run(argc, argv, [&](Runtime& runtime) { return measure(runtime, arguments); });
}

}  // namespace weft::benchmarks
