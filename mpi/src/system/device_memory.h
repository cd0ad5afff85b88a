// Device memory of MPI_Alloc_mem: the info key weft_memory_kind asks for it.
#pragma once

#include "weft/memory/buffer.h"
#include "weft/mpi/mpi.h"

#include "models/mpi/objects/error.h"
#include "models/mpi/objects/info.h"

namespace weft::mpi {

// The place that the info key weft_memory_kind names: "emulated", or with a device "cuda:1". Leaves `place` as it is without the key.
// Errors: MPI_ERR_INFO_VALUE, MPI_ERR_OTHER if MPI does not run and a device is named.
Error find_place(const Info* info, memory::Place* place);

// Allocates memory of the kind that the info object names: "emulated", or with a device "cuda:1". Leaves `address` as it is if
// that is host memory, or nothing is named. Errors: MPI_ERR_INFO_VALUE, MPI_ERR_NO_MEM, MPI_ERR_OTHER if MPI does not run.
Error allocate_on_device(MPI_Aint size, MPI_Info info, void** address);
// Returns false if allocate_on_device() has not allocated the memory. After MPI_Finalize the end of the job has freed it.
bool free_on_device(void* address);

}  // namespace weft::mpi
