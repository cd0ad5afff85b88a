// Errors that travel between PEs: what an exception was, and each call that it crossed.
#pragma once

#include <exception>
#include <string>

#include "weft/base/pup.h"

namespace weft::runtime {

// The wire form of an error, in a message that sets a future and in the reply to a call: four strings.
void pack_error(Pup& p, const std::exception_ptr& error);
std::exception_ptr unpack_error(Pup& p);
// `error` as the RemoteError that travels: what it was, and where ("in Ring[3].work on PE 1").
std::exception_ptr as_remote_error(const std::exception_ptr& error, const std::string& where);

}  // namespace weft::runtime
