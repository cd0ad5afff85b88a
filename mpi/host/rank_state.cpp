#include "rank_state.h"

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <utility>

#include "host_interface.h"

namespace weft::mpi_host {

namespace {

// Constant-initialized: the functions of mpi/host/libc run before the host's main(), too.
constinit std::atomic<const std::vector<std::unique_ptr<RankState>>*> all_states = nullptr;

}  // namespace

RandomState::RandomState() {
  // As the C library begins.
  initstate_r(1, memory, sizeof memory, &numbers);
}

void RankState::keep_environment(char* const* list) {
  std::vector<char*> kept;
  for (char* const* entry = list; entry != nullptr && *entry != nullptr; ++entry) kept.push_back(*entry);
  kept.push_back(nullptr);
  environment = std::move(kept);
  *libc.environment = environment.data();
}

bool RankState::owns(const void* address) const {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return number >= begin_address && number < end_address;
}

void set_rank_states(const std::vector<std::unique_ptr<RankState>>* states) { all_states = states; }

RankState* state_of(int rank) {
  const auto* const states = all_states.load(std::memory_order_acquire);
  if (states == nullptr || rank < 0 || static_cast<std::size_t>(rank) >= states->size()) return nullptr;
  return (*states)[static_cast<std::size_t>(rank)].get();
}

RankState* current_state() { return state_of(weft_mpi_host_current_rank()); }

RankState* program_state() { return state_of(weft_mpi_host_program_rank()); }

void* find_replaced(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();  // the C library has them all
  return found;
}

}  // namespace weft::mpi_host
