// One rank's copy of the program: its code, globals and statics, at the begin of the rank's slot.
//
// The copy maps the program's file. Copies share the pages that none of them has written, such as the code.
#pragma once

#include <string>
#include <vector>

#include "loading/linkage.h"
#include "program/program.h"
#include "slots/rank_state.h"

namespace weft::mpi_host {

using Main = int (*)(int argc, char** argv, char** environment);

class ProgramCopy {
 public:
  // Loads a copy at `base`, from the file `fd`; runs nothing of the program but its functions that choose functions
  // (IFUNC). The variables of `state` are then those of the copy. REQUIRES: the addresses are reserved for it.
  // Throws: Refusal.
  ProgramCopy(const Program& program, const Linkage& linkage, int fd, char* base, RankState& state);
  // Maps the segments of the program as its file has them. Throws: Refusal.
  static void map_segments(const Program& program, int fd, char* base);
  // Write-protects what is written only while a copy is loaded. Throws: Refusal.
  static void protect_relocations(const Program& program, char* base);

  ProgramCopy(const ProgramCopy&) = delete;
  ProgramCopy& operator=(const ProgramCopy&) = delete;

  // Runs the constructors, main() with a copy of the arguments, and what the program does when it ends. Returns what main()
  // returns.
  int run(const std::vector<std::string>& arguments);

 private:
  // The functions that the program's start code passes to the C library.
  struct Start {
    Main main = nullptr;
    Main constructors = nullptr;  // of programs that were linked with a C library before 2.34
  };

  void find_variables(const Linkage& linkage);
  void find_main();
  void run_constructors(int argc, char** argv, char** environment) const;
  void run_array(const FunctionArray& array, int argc, char** argv, char** environment) const;

  static int capture_main(Main main, int argc, char** argv, Main constructors, void (*destructors)(),
                          void (*loader_end)(), void* stack_end);

  // Does as a program that ends: runs its handlers in reverse order, then its destructors, then flushes its output.
  void finish(int code);

  const Program& program_;
  RankState& state_;
  char* const base_;  // the load address
  Start start_;
  std::vector<std::string> arguments_;
  std::vector<char*> argv_;
};

}  // namespace weft::mpi_host
