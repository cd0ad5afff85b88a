#include "openmp.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "program/elf_file.h"

// The loader's function that returns the calling thread's copy of a thread-local variable. Code of shared libraries calls it.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the loader's name of it
extern "C" void* __tls_get_addr(void* module_and_offset);

namespace weft::mpi_host {

namespace {

using Function = int (*)();

Function function_of(const std::vector<void*>& libraries, const char* name) {
  for (void* const library : libraries) {
    if (void* const found = dlsym(library, name)) return reinterpret_cast<Function>(found);
  }
  return nullptr;
}

}  // namespace

OpenMp::OpenMp(const std::vector<void*>& libraries)
    : level_(function_of(libraries, "omp_get_level")),
      active_level_(function_of(libraries, "omp_get_active_level")) {
  if (active_level_ == nullptr) level_ = nullptr;
  if (level_ != nullptr) find_thread_local_block();
}

void OpenMp::find_thread_local_block() {
  Dl_info place{};
  if (dladdr(reinterpret_cast<const void*>(level_), &place) == 0) return;
  const std::string path = place.dli_fname;
  if (!std::string_view(path).substr(path.rfind('/') + 1).starts_with("libgomp.so")) return;
  void* const library = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  std::size_t module = 0;
  // LLVM's runtime is installed under the name of libgomp too.
  if (library == nullptr || dlsym(library, "__kmpc_fork_call") != nullptr) return;
  if (dlinfo(library, RTLD_DI_TLS_MODID, &module) != 0 || module == 0) return;
  const ElfFile file = ElfFile::read(path);
  const Elf64_Phdr* const segment = file.segment(PT_TLS);
  if (segment == nullptr) return;
  std::size_t first_variable[2] = {module, 0};
  block_ = static_cast<std::byte*>(__tls_get_addr(static_cast<void*>(first_variable)));
  block_bytes_ = segment->p_memsz;
  image_ = static_cast<const std::byte*>(place.dli_fbase) + segment->p_vaddr;
  image_bytes_ = segment->p_filesz;
}

// As on a thread that has not used OpenMP yet.
void OpenMp::begin_anew() {
  std::memcpy(block_, image_, image_bytes_);
  std::memset(block_ + image_bytes_, 0, block_bytes_ - image_bytes_);
}

void* OpenMp::put_aside() {
  if (block_ == nullptr) return nullptr;
  Bytes kept = std::make_unique<std::byte[]>(block_bytes_);
  std::memcpy(kept.get(), block_, block_bytes_);
  if (outside_.empty()) {
    begin_anew();
  } else {
    std::memcpy(block_, outside_.back().get(), block_bytes_);
    outside_.pop_back();
  }
  if (level_() != 0) {
    std::memcpy(block_, kept.get(), block_bytes_);
    return nullptr;
  }
  return kept.release();
}

// The thread is outside of regions now: a rank that waits in one has taken its state away.
void OpenMp::take_back(void* state) {
  Bytes bytes(static_cast<std::byte*>(state));
  std::swap_ranges(block_, block_ + block_bytes_, bytes.get());
  outside_.push_back(std::move(bytes));
}

}  // namespace weft::mpi_host
