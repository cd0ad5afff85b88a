// One rank's copy of the program: its code, globals and statics, loaded from a memory file of its own.
//
// The loader knows copies apart by the files, so the files stay open as long as the process runs.
#pragma once

#include <string>
#include <vector>

#include "program.h"
#include "rank_state.h"

namespace weft::mpi_host {

using Main = int (*)(int argc, char** argv, char** environment);

class ProgramCopy {
 public:
  // Loads a copy for `rank`; runs nothing of the program. The variables of `state` are then those of the copy.
  // Throws: Refusal.
  ProgramCopy(const Program& program, int rank, RankState& state);
  ProgramCopy(const ProgramCopy&) = delete;
  ProgramCopy& operator=(const ProgramCopy&) = delete;

  // Runs the constructors, main() with a copy of the arguments, and what the program does when it ends. Returns what main()
  // returns.
  int run(const std::vector<std::string>& arguments);

 private:
  // What the program's start code passes to the C library.
  struct Start {
    Main main = nullptr;
    Main constructors = nullptr;  // of programs that were linked with a C library before 2.34
  };

  void load(int rank);
  void find_variables();
  void find_main();
  void run_constructors(int argc, char** argv, char** environment) const;
  void run_array(const FunctionArray& array, int argc, char** argv, char** environment) const;

  static int capture_main(Main main, int argc, char** argv, Main constructors, void (*destructors)(),
                          void (*loader_end)(), void* stack_end);

  // What a program does when it ends: its handlers in reverse order, then its destructors; then its output is flushed.
  void finish(int code);

  const Program& program_;
  RankState& state_;
  char* base_ = nullptr;  // the load address
  Start start_;
  std::vector<std::string> arguments_;
  std::vector<char*> argv_;
};

}  // namespace weft::mpi_host
