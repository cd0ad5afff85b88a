// What a process tells an aggregator of its access in a part of the file, and the checks of it.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "models/mpi/window/wire.h"

namespace weft::mpi {

// A part of the file that an aggregator works on at a time: the offsets from `begin` on, before `end`.
struct Part {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct PartHeader {
  std::uint64_t num_runs = 0;
  std::uint64_t size_bytes = 0;
};
// The access of one process in a part.
struct PartAccess {
  PartHeader header;
  std::vector<WindowRun> runs;  // offsets are those of the file
  std::int64_t first = 0;       // the position in the view of the process itself
};

// Throw Error(kCorrupt) for what cannot be. `source`: the rank that has sent it.
//
// The bytes are not more than the part has, and the runs not more than the bytes.
void check_header(int source, const PartHeader& header, const Part& part);
// The runs are in the part, one behind the other, and have as many bytes as the header says.
void check_part_runs(int source, const PartAccess& access, const Part& part);

}  // namespace weft::mpi
