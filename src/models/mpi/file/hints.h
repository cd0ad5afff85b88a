// The hints of files that Weft reads. Others are kept, and told again by MPI_File_get_info.
#pragma once

#include <cstdint>

#include "models/mpi/file/strided_io.h"
#include "models/mpi/file/two_phase.h"
#include "models/mpi/objects/info.h"

namespace weft::mpi {

struct FileHints {
  AggregatorUse read_use = AggregatorUse::kIfUseful;   // romio_cb_read
  AggregatorUse write_use = AggregatorUse::kIfUseful;  // romio_cb_write
  std::int32_t num_aggregators = 1;                    // cb_nodes
  std::int64_t buffer_bytes = 0;                       // cb_buffer_size, of each aggregator
  Sieving sieving;                                     // ind_rd_buffer_size, romio_ds_read
  Info::Pairs pairs;                                   // all of them, as MPI_File_get_info tells them
};

// Those of a file without hints that so many processes open.
FileHints default_file_hints(int num_processes);
// Changes `hints`. A value that cannot be used is ignored, as the standard says.
void use_file_hints(const Info::Pairs& pairs, int num_processes, FileHints& hints);

}  // namespace weft::mpi
