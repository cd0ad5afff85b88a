// The shared libraries of a program. A library is loaded once in a process, so its variables are shared by the ranks.
#pragma once

#include <string>
#include <vector>

#include "program/program.h"

namespace weft::mpi_host {

struct Library {
  std::string name;  // as the program asks for it
  std::string path;
};

// All libraries that the loader would load for the program, also those that libraries need. Asks the loader, which runs
// none of the program. Throws: Refusal.
std::vector<Library> libraries_of(const Program& program);

// The libraries that `loader` would load for dlopen(name) in a program: that library first, and all others with it.
// `program`: a path with a '/'. `environment`: with which the process has begun. Throws: Refusal.
std::vector<Library> libraries_with(const std::string& loader, const std::string& program,
                                    const std::string& name, char* const* environment);

// Whether the ranks may share it, whatever it has.
bool is_shared_by_rule(const std::string& name, const std::vector<std::string>& shared_by_request);
// The variables of the library that the ranks of a process would share, as a part of a sentence. Empty if it has none. Throws: Refusal.
std::string variables_of(const Library& library);
std::string file_name_of(const Library& library);

// Checks that the program uses Weft's MPI library, that its libraries may be shared, and that it takes no copies of
// their variables. `shared_by_request` has the names of libraries that the user allows: libhdf5.so.310, or libhdf5.
// Throws: Refusal.
void check_libraries(const Program& program, const std::vector<Library>& libraries,
                     const std::vector<std::string>& shared_by_request);

// For tests.
bool is_known_to_be_shareable(const std::string& name);
bool names_library(const std::string& request, const std::string& name);

}  // namespace weft::mpi_host
