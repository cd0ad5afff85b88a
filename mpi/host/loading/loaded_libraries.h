// dlopen() in the program of a rank.
//
// The library is looked for as the loader does it for the program: its RUNPATH counts. A library with variables, which the ranks of
// a process would share, is loaded once per rank: from a copy of its file in memory, because the loader loads a file once. Its
// variables lie in memory of the process, so a rank does not move while it has such a library. Others, and those that may be shared,
// are loaded once. Libraries that the library needs in turn are not copied: dlopen() refuses it if they have variables.
// Threads: the PE's; open() and close() without a rank on any.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "program/libraries.h"
#include "program/program.h"

namespace weft::mpi_host {

class LoadedLibraries {
 public:
  // `shared_by_request`: as for check_libraries().
  LoadedLibraries(const Program& program, std::vector<std::string> shared_by_request);
  LoadedLibraries(const LoadedLibraries&) = delete;
  LoadedLibraries& operator=(const LoadedLibraries&) = delete;

  // As dlopen() and dlclose() in the program of the rank; -1: on a thread without a rank, which gets no copies. Throws: Refusal.
  void* open(int rank, const char* name, int flags);
  int close(int rank, void* handle);

  // How many libraries the rank has loaded for itself alone and not closed.
  int num_own(int rank) const;
  // The rank is in another process.
  void rank_left(int rank);

 private:
  // A library that one rank has for itself. The file is never closed: the loader knows the library by its path in /proc/self/fd.
  struct Copy {
    int rank = -1;
    dev_t device = 0;
    ino_t inode = 0;
    std::string path;
    void* handle = nullptr;
    int uses = 0;
  };
  // The steps of one dlopen().
  struct Plan {
    std::string path;                   // to be loaded; that of a copy
    std::vector<std::string> needed{};  // paths of libraries that come first
    bool is_own = false;
  };

  Plan plan(int rank, const char* name);
  std::string copy_for(int rank, const Library& library);
  Copy* copy_with(int rank, const std::string& path);

  const std::string loader_;
  const std::string program_;
  const std::vector<std::string> shared_by_request_;
  std::vector<Copy> copies_;
};

// The function that a copy of the program calls under that name; null if it is the C library's.
void* own_loading_function(std::string_view name);
// From now on these functions use it. Once, before a rank runs.
void begin_loading(LoadedLibraries& libraries);

}  // namespace weft::mpi_host
