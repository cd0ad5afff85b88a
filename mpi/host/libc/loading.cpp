// dlopen(), dlclose() and dlerror() of the copies of a program. Libraries call those of the C library, which look for a library as
// their own callers need it.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <string_view>

#include "loading/loaded_libraries.h"
#include "ranks/host_interface.h"

namespace weft::mpi_host {

namespace {

constinit LoadedLibraries* loaded = nullptr;

// The sentence of a dlopen() that this host has refused, until dlerror() gives it.
struct Refused {
  std::array<char, 1024> text;
  bool is_new;
};
constinit thread_local Refused refused{};

void keep(std::string_view text) {
  const std::size_t length = std::min(text.size(), refused.text.size() - 1);
  text.copy(refused.text.data(), length);
  refused.text[length] = '\0';
  refused.is_new = true;
}

void* rank_dlopen(const char* name, int flags) {
  refused.is_new = false;
  if (loaded == nullptr) return dlopen(name, flags);
  try {
    return loaded->open(weft_mpi_host_program_rank(), name, flags);
  } catch (const std::exception& error) {
    keep(error.what());
    return nullptr;
  }
}

int rank_dlclose(void* handle) {
  refused.is_new = false;
  return loaded == nullptr ? dlclose(handle) : loaded->close(weft_mpi_host_program_rank(), handle);
}

char* rank_dlerror() {
  if (!refused.is_new) return dlerror();
  refused.is_new = false;
  return refused.text.data();
}

}  // namespace

void* own_loading_function(std::string_view name) {
  if (name == "dlopen") return reinterpret_cast<void*>(&rank_dlopen);
  if (name == "dlclose") return reinterpret_cast<void*>(&rank_dlclose);
  if (name == "dlerror") return reinterpret_cast<void*>(&rank_dlerror);
  return nullptr;
}

void begin_loading(LoadedLibraries& libraries) { loaded = &libraries; }

}  // namespace weft::mpi_host
