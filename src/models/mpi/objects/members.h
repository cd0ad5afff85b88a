// Processes in the order of their ranks in a group.
#pragma once

#include <memory>
#include <vector>

namespace weft::mpi {

// The rank in MPI_COMM_WORLD of each member.
using Members = std::vector<int>;
using MembersPointer = std::shared_ptr<const Members>;

}  // namespace weft::mpi
