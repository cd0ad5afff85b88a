#include "slots/rank_state.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "ranks/host_interface.h"
#include "slots/slot_heap.h"

namespace weft::mpi_host {

namespace {

// A list of its own: a library that was loaded before may have called setenv(), and the C library frees the list that it has made
// when it makes the next one. Never freed: libraries read the environment at the end of the process.
char** initial_environment = nullptr;

// Programs that a rank starts are other jobs, which do not have the number of ranks of this one.
bool is_of_this_job(std::string_view entry) {
  constexpr std::string_view kNames[] = {
      "WEFT_MPI_RANKS=", "WEFT_MPI_RANK_MAP=", "WEFT_MPI_STACK_KIB=", "WEFT_MPI_SHARE_LIBRARIES="};
  return std::ranges::any_of(kNames, [&](std::string_view name) { return entry.starts_with(name); });
}

// Constant-initialized: the functions of mpi/host/libc run before the host's main(), too.
constinit std::atomic<const std::vector<RankState*>*> all_states = nullptr;

}  // namespace

RandomState::RandomState() {
  // As the C library begins.
  initstate_r(1, memory, sizeof memory, &numbers);
}

void RankState::keep_environment(char* const* list) {
  std::size_t count = 0;
  while (list != nullptr && list[count] != nullptr) ++count;
  auto** const kept = static_cast<char**>(allocate((count + 1) * sizeof(char*)));
  for (std::size_t i = 0; i < count; ++i) kept[i] = is_in_slot(list[i]) ? list[i] : own_text(list[i]);
  kept[count] = nullptr;
  if (environment != nullptr) heap->free(static_cast<void*>(environment));
  environment = kept;
  *libc.environment = kept;
}

void* RankState::allocate(std::size_t size_bytes) {
  void* const block = heap->allocate(size_bytes);
  if (block != nullptr) return block;
  std::fputs("weft: the slot of a rank is full\n", stderr);
  std::abort();
}

char* RankState::own_text(const char* text) {
  const std::size_t bytes = std::strlen(text) + 1;
  auto* const copy = static_cast<char*>(allocate(bytes));
  std::memcpy(copy, text, bytes);
  return copy;
}

bool RankState::is_in_slot(const void* address) const {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return number >= begin_address && number < reinterpret_cast<std::uintptr_t>(heap->end());
}

bool RankState::owns(const void* address) const {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return number >= begin_address && number < end_address;
}

void set_rank_states(const std::vector<RankState*>* states) {
  std::size_t count = 0;
  while (environ != nullptr && environ[count] != nullptr) ++count;
  initial_environment = new char*[count + 1];
  char** const end = std::copy_if(environ, environ + count, initial_environment,
                                  [](const char* entry) { return !is_of_this_job(entry); });
  *end = nullptr;
  environ = initial_environment;
  all_states = states;
}

char** environment_of_host() { return initial_environment; }

void forget_environment_of(const RankState& state) {
  if (state.is_in_slot(static_cast<void*>(environ))) environ = initial_environment;
}

RankState* state_of(int rank) {
  const auto* const states = all_states.load(std::memory_order_acquire);
  if (states == nullptr || rank < 0 || static_cast<std::size_t>(rank) >= states->size()) return nullptr;
  return (*states)[static_cast<std::size_t>(rank)];
}

RankState* current_state() { return state_of(weft_mpi_host_current_rank()); }

RankState* program_state() { return state_of(weft_mpi_host_program_rank()); }

void* find_replaced(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();  // the C library has them all
  return found;
}

}  // namespace weft::mpi_host
