// Names of services that processes of this user on this host publish for their ports: a file for each.
//
// A file of a process that has ended is no name any more, and is removed when a name is looked for or published. Threads: any.
#pragma once

#include <string>

#include "models/mpi/objects/error.h"

namespace weft::mpi {

// MPI_ERR_SERVICE if another process that runs has published the name, or this one.
Error publish_name(const std::string& service, const std::string& port);
// MPI_ERR_SERVICE if this process has not published the name.
Error unpublish_name(const std::string& service);
// MPI_ERR_NAME if there is no such name.
Error look_up_name(const std::string& service, std::string* port);

}  // namespace weft::mpi
