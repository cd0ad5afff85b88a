#include "program/symbol_scope.h"

#include <dlfcn.h>

#include <thread>
#include <utility>

#include "base/format.h"
#include "program/refusal.h"

namespace weft::mpi_host {

namespace {

void* look_up(void* where, const Symbol& symbol) {
  return symbol.version.empty() ? dlsym(where, symbol.name.c_str())
                                : dlvsym(where, symbol.name.c_str(), symbol.version.c_str());
}

const void* load_address(const void* address) {
  Dl_info found{};
  return dladdr(address, &found) == 0 ? nullptr : found.dli_fbase;
}

// x86-64 keeps the thread pointer where it points to.
std::int64_t thread_pointer() {
  std::int64_t pointer = 0;
  asm("movq %%fs:0, %0" : "=r"(pointer));
  return pointer;
}

}  // namespace

SymbolScope::SymbolScope(std::vector<void*> libraries)
    : libraries_(std::move(libraries)), host_(load_address(reinterpret_cast<const void*>(&load_address))) {}

bool SymbolScope::is_in_host(const void* address) const { return load_address(address) == host_; }

// dlvsym() does not find symbols without a version, which those of the host are.
void* SymbolScope::find(const Symbol& symbol) const {
  if (void* const any = dlsym(RTLD_DEFAULT, symbol.name.c_str()); any != nullptr && is_in_host(any))
    return any;
  if (void* const found = look_up(RTLD_DEFAULT, symbol)) return found;
  for (void* const library : libraries_) {
    if (void* const found = look_up(library, symbol)) return found;
  }
  return nullptr;
}

std::int64_t SymbolScope::thread_offset(const Symbol& symbol, const std::string& program) const {
  const auto offset_here = [&]() -> std::int64_t {
    return reinterpret_cast<std::int64_t>(find(symbol)) - thread_pointer();
  };
  std::int64_t of_other_thread = 0;
  std::thread([&] { of_other_thread = offset_here(); }).join();
  const std::int64_t offset = offset_here();
  if (offset == of_other_thread) return offset;
  throw Refusal(base::format(
      "{}: refers to the thread-local variable {} of a shared library in a way that works for "
      "libraries "
      "of the start alone; run it with LD_PRELOAD naming that library, or start one PE per rank (-n)",
      program, symbol.name));
}

}  // namespace weft::mpi_host
