// The lines of `weft info` about UCX.
#pragma once

#include <string>
#include <vector>

namespace weft::machine::ucx {

// Version, file and transports of the UCX that this process runs with, one per line.
std::vector<std::string> report();

}  // namespace weft::machine::ucx
