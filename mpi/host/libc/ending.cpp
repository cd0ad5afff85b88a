// exit() and its kin end the rank that calls them. The functions that a rank asks to run at its end are the rank's.
//
// A process that a rank has forked is another process: there the functions do what they do elsewhere.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "ranks/host_interface.h"
#include "slots/rank_state.h"

namespace weft::mpi_host {

namespace {

const pid_t host_process = getpid();

bool is_in_fork() { return getpid() != host_process; }

[[noreturn]] void end_process(int code) {
  syscall(SYS_exit_group, code);
  std::abort();
}

[[noreturn]] void end_rank(int code) {
  if (is_in_fork()) end_process(code);
  weft_mpi_host_exit_rank(code & 0xff);
}

// Returns 0, as the functions do which call it.
int add_handler(RankState& state, const ExitHandler& handler) {
  state.exit_handlers.push_back(handler);
  return 0;
}

}  // namespace

}  // namespace weft::mpi_host

using namespace weft::mpi_host;  // NOLINT(google-build-using-namespace): the replacements are C functions

extern "C" {

void exit(int code) noexcept {
  RankState* const state = current_state();
  if (state == nullptr) {
    replaced<void(int)>("exit")(code);
    std::abort();
  }
  state->finish(code);
  end_rank(code);
}

// The library ends the process with it, also on the stack of a rank.
void _exit(int code) {
  if (program_state() == nullptr) end_process(code);
  end_rank(code);
}

void _Exit(int code) noexcept { _exit(code); }

void quick_exit(int code) noexcept {
  RankState* const state = current_state();
  if (state == nullptr) {
    replaced<void(int)>("quick_exit")(code);
    std::abort();
  }
  while (!state->quick_exit_handlers.empty()) {
    const ExitHandler handler = state->quick_exit_handlers.back();
    state->quick_exit_handlers.pop_back();
    handler.function(handler.argument);
  }
  end_rank(code);
}

// at_quick_exit(), which lies in the program itself, calls it.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the C library's name of it
int __cxa_at_quick_exit(void (*function)(void*), void* library) noexcept {
  RankState* const state = current_state();
  if (state == nullptr || (library != nullptr && !state->owns(library)))
    return replaced<int(void (*)(void*), void*)>("__cxa_at_quick_exit")(function, library);
  state->quick_exit_handlers.push_back({.function = function});
  return 0;
}

int on_exit(void (*function)(int, void*), void* argument) noexcept {
  RankState* const state = current_state();
  if (state == nullptr) return replaced<int(void (*)(int, void*), void*)>("on_exit")(function, argument);
  return add_handler(*state, {.with_code = function, .argument = argument});
}

// atexit() calls it, and so does the code that registers destructors of static objects. `library` is the library or the copy that
// asks: functions of a shared library run when the process ends, because other ranks use the library too.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the C++ runtime's name of it
int __cxa_atexit(void (*function)(void*), void* argument, void* library) noexcept {
  RankState* const state = current_state();
  if (state == nullptr || (library != nullptr && !state->owns(library)))
    return replaced<int(void (*)(void*), void*, void*)>("__cxa_atexit")(function, argument, library);
  return add_handler(*state, {.function = function, .argument = argument});
}

}  // extern "C"
