#include "slots/process_references.h"

#include <csignal>
#include <cstring>
#include <exception>
#include <locale>
#include <new>

#include "base/format.h"

namespace weft::mpi_host {

namespace {

using base::format;

// The implementation of the C++ library's locale that is set for the process. The object is one pointer to it.
const void* global_locale() {
  const std::locale locale;
  static_assert(sizeof locale == sizeof(void*));
  const void* implementation = nullptr;
  std::memcpy(static_cast<void*>(&implementation), static_cast<const void*>(&locale), sizeof implementation);
  return implementation;
}

const void* handler_of(int signal) {
  struct sigaction action{};
  if (sigaction(signal, nullptr, &action) != 0) return nullptr;
  return (action.sa_flags & SA_SIGINFO) != 0 ? reinterpret_cast<const void*>(action.sa_sigaction)
                                             : reinterpret_cast<const void*>(action.sa_handler);
}

}  // namespace

std::string what_refers_to(const Slots& slots, int rank) {
  const auto is_in_slot = [&](const void* address) { return slots.rank_at(address) == rank; };
  constexpr int kLastSignal = 64;
  for (int signal = 1; signal <= kLastSignal; ++signal) {
    if (is_in_slot(handler_of(signal)))
      return format("its function handles signal {} ({}); set another handler before", signal,
                    strsignal(signal));
  }
  stack_t stack{};
  if (sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0 && is_in_slot(stack.ss_sp))
    return "sigaltstack() names its memory; disable that stack before";
  if (is_in_slot(global_locale()))
    return "std::locale::global() has set its locale; set std::locale::classic() before";
  if (is_in_slot(reinterpret_cast<const void*>(std::get_terminate())))
    return "std::set_terminate() has set its function; set another one before";
  if (is_in_slot(reinterpret_cast<const void*>(std::get_new_handler())))
    return "std::set_new_handler() has set its function; set another one before";
  return {};
}

}  // namespace weft::mpi_host
