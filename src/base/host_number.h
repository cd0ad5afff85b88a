// Which processes run on the same host.
#pragma once

#include <cstdint>

namespace weft::base {

// Equal for processes that see each other in /proc and reach each other's sockets: those of one boot of one kernel, of one
// PID namespace and of one network namespace. 0 if the system does not say.
std::uint64_t host_number();

}  // namespace weft::base
