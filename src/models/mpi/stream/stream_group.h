// The group of device arrays of a communicator whose ranks have streams, for collectives that are queued.
//
// Threads: the PE's.
#pragma once

#include <vector>

#include "weft/queued/device_group.h"
#include "weft/runtime/task.h"

#include "models/mpi/communicators/communicator.h"
#include "models/mpi/stream/program_stream.h"

namespace weft::mpi {

// Collective. `pes`: of the ranks. The stream's watch notes what is queued. Throws base::Error on all ranks if one fails,
// see make_device_group(), or if two ranks have one stream.
runtime::Task<queued::DeviceGroup> make_stream_group(Ref<Communicator> communicator,
                                                     Ref<ProgramStream> stream, std::vector<int> pes);

}  // namespace weft::mpi
