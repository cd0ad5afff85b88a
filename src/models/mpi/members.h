// Processes in the order of their ranks.
#pragma once

#include <memory>
#include <vector>

namespace weft::mpi {

// The PE of each rank.
using Members = std::vector<int>;
using MembersPointer = std::shared_ptr<const Members>;

}  // namespace weft::mpi
