// A rank's own copy of state that the C library keeps once per process. The functions in mpi/host/libc, which replace those
// of the C library, use it.
//
// Threads: that of the PE. Other threads of a program have no rank and get what the C library has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace weft::mpi_host {

class SlotHeap;

// A rank's values of the C library's variables. Each points into the rank's copy of the program if that has a copy of the
// variable, else to `own`.
struct LibcVariables {
  struct {
    char** environment = nullptr;
    char* argument = nullptr;  // optarg
    int index = 1;             // optind
    int prints_errors = 1;     // opterr
    int unknown_option = '?';  // optopt
  } own;
  char*** environment = &own.environment;
  char** argument = &own.argument;
  int* index = &own.index;
  int* prints_errors = &own.prints_errors;
  int* unknown_option = &own.unknown_option;

  LibcVariables() = default;
  LibcVariables(const LibcVariables&) = delete;
  LibcVariables& operator=(const LibcVariables&) = delete;
};

// One pass of getopt() over an argument list, as far as it has come.
struct OptionScan {
  char* const* argv = nullptr;
  std::vector<char*> original;  // argv as it was; getopt() reorders it
  int begin = 1;                // optind at the begin
  int num_calls = 0;
  int index = 0;  // optind after the last call; another value says that the program begins anew
};

struct RandomState {
  RandomState();
  random_data numbers{};  // of rand() and random()
  char memory[128] = {};
  drand48_data numbers48{};  // of drand48() and its kin
};

// A function that the rank runs when it ends.
struct ExitHandler {
  void (*function)(void* argument) = nullptr;
  void (*with_code)(int code, void* argument) = nullptr;  // of on_exit()
  void* argument = nullptr;
};

struct RankState {
  explicit RankState(SlotHeap& heap_in) : heap(&heap_in) {}
  RankState(const RankState&) = delete;
  RankState& operator=(const RankState&) = delete;

  // Gives the rank a copy of a list that ends with null, for its `environ`. The list and its texts lie in the rank's heap.
  void keep_environment(char* const* list);
  // Memory of the rank's heap. Ends the process if there is none.
  void* allocate(std::size_t size_bytes);
  bool is_in_slot(const void* address) const;
  // Whether the address is in the rank's copy of the program.
  bool owns(const void* address) const;

  // The heap from which the rank's program allocates.
  SlotHeap* const heap;
  LibcVariables libc;
  char** environment = nullptr;
  OptionScan options;
  RandomState random;
  char* token_position = nullptr;  // of strtok()
  std::vector<ExitHandler> exit_handlers;
  std::vector<ExitHandler> quick_exit_handlers;
  bool has_run_destructors = false;
  // Runs what the rank has asked to run at its end, and makes its output visible.
  std::function<void(int code)> finish;
  // Where the rank's copy of the program lies.
  std::uintptr_t begin_address = 0;
  std::uintptr_t end_address = 0;

 private:
  char* own_text(const char* text);
};

// The states of the ranks of this process by rank number; null for ranks elsewhere. The list is set once, before a rank runs; its
// entries change when ranks move.
void set_rank_states(const std::vector<RankState*>* states);

// The environment with which each rank begins: that of the process without the settings of virtual ranks.
char** environment_of_host();

// The rank leaves: `environ` no longer names its list.
void forget_environment_of(const RankState& state);
// The rank leaves: the C library's state is no longer that of its getopt().
void forget_options_of(const RankState& state);

// The state of the rank whose stack runs; null on any other stack.
RankState* current_state();

// The state of the rank whose program runs: null in the MPI library too.
RankState* program_state();

// The state of that rank; null if it is not in this process.
RankState* state_of(int rank);

void* find_replaced(const char* name);

// The C library's function of that name, which one of mpi/host/libc replaces.
template <class Function>
Function* replaced(const char* name) {
  return reinterpret_cast<Function*>(find_replaced(name));
}

}  // namespace weft::mpi_host
