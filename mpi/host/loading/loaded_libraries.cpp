#include "loading/loaded_libraries.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "program/refusal.h"
#include "slots/rank_memory.h"
#include "slots/rank_state.h"

namespace weft::mpi_host {

namespace {

using base::format;

// Whether the loader has a library of that name, or of that path, which no rank has for itself alone.
bool is_loaded(const std::string& name) {
  void* const found = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (found != nullptr) dlclose(found);
  return found != nullptr;
}

void write_all(int file, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw Refusal(format("{}: cannot be copied: {}", path, std::strerror(errno)));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

// Gives the name of the library another tag, which the loader ignores: it must not find the copy of a rank under that name.
void hide_name(const ElfFile& file, int copy) {
  constexpr Elf64_Sxword kIgnoredTag = 0x6000f00d;
  const Elf64_Phdr* const segment = file.segment(PT_DYNAMIC);
  for (std::size_t i = 0; i < file.dynamic().size(); ++i) {
    if (file.dynamic()[i].d_tag != DT_SONAME) continue;
    const std::size_t offset = segment->p_offset + i * sizeof(Elf64_Dyn) + offsetof(Elf64_Dyn, d_tag);
    if (pwrite(copy, &kIgnoredTag, sizeof kIgnoredTag, static_cast<off_t>(offset)) != sizeof kIgnoredTag)
      throw Refusal(format("{}: cannot be copied: {}", file.path(), std::strerror(errno)));
  }
}

}  // namespace

LoadedLibraries::LoadedLibraries(const Program& program, std::vector<std::string> shared_by_request)
    : loader_(program.file().interpreter()),
      program_(std::filesystem::absolute(program.path())),
      shared_by_request_(std::move(shared_by_request)) {}

void* LoadedLibraries::open(int rank, const char* name, int flags) {
  if (name == nullptr || *name == '\0') return dlopen(name, flags);
  const Plan found = plan(rank, name);
  for (const std::string& path : found.needed) {
    if (dlopen(path.c_str(), (flags & (RTLD_LAZY | RTLD_NOW)) | RTLD_LOCAL) == nullptr) return nullptr;
  }
  // The names of a rank's own library are not for the other ranks.
  void* const handle = dlopen(found.path.c_str(), found.is_own ? flags & ~RTLD_GLOBAL : flags);
  Copy* const copy = found.is_own && handle != nullptr ? copy_with(rank, found.path) : nullptr;
  if (copy != nullptr) {
    copy->handle = handle;
    ++copy->uses;
  }
  return handle;
}

int LoadedLibraries::close(int rank, void* handle) {
  if (rank < 0) return dlclose(handle);
  for (Copy& copy : copies_) {
    if (copy.rank == rank && copy.handle == handle && copy.uses > 0) --copy.uses;
  }
  return dlclose(handle);
}

LoadedLibraries::Plan LoadedLibraries::plan(int rank, const char* name) {
  const HostAllocates host;
  if (is_loaded(name)) return {.path = name};
  const std::vector<Library> libraries = libraries_with(loader_, program_, name, environment_of_host());
  const Library& wanted = libraries.front();
  Plan plan{.path = wanted.path};
  for (const Library& library : std::span(libraries).subspan(1)) {
    if (is_shared_by_rule(file_name_of(library), shared_by_request_) || is_loaded(file_name_of(library)) ||
        is_loaded(library.path))
      continue;
    const std::string variables = variables_of(library);
    if (!variables.empty()) {
      throw Refusal(
          format("{}: its library {} {}, which the ranks of a process would share; run with --share-library "
                 "{} if that is correct for the program, or link it into {} statically",
                 name, library.name, variables, file_name_of(library), name));
    }
    plan.needed.push_back(library.path);
  }
  if (is_loaded(wanted.path) || is_shared_by_rule(file_name_of(wanted), shared_by_request_)) return plan;
  const std::string variables = variables_of(wanted);
  if (variables.empty()) return plan;
  if (rank < 0)
    throw Refusal(
        format("{}: {}, and this thread has no rank; load it on the thread of the rank", name, variables));
  plan.path = copy_for(rank, wanted);
  plan.is_own = true;
  return plan;
}

std::string LoadedLibraries::copy_for(int rank, const Library& library) {
  struct stat status{};
  if (stat(library.path.c_str(), &status) != 0)
    throw Refusal(format("{}: {}", library.path, std::strerror(errno)));
  for (const Copy& copy : copies_) {
    if (copy.rank == rank && copy.device == status.st_dev && copy.inode == status.st_ino) return copy.path;
  }
  const ElfFile file = ElfFile::read(library.path);
  const int memory = memfd_create(file_name_of(library).c_str(), MFD_CLOEXEC);
  if (memory < 0) {
    throw Refusal(format("{}: no copy for rank {}: {}; ulimit -n bounds the number of copies", library.path,
                         rank, std::strerror(errno)));
  }
  write_all(memory, file.bytes(), library.path);
  hide_name(file, memory);
  copies_.push_back({.rank = rank,
                     .device = status.st_dev,
                     .inode = status.st_ino,
                     .path = format("/proc/self/fd/{}", memory)});
  return copies_.back().path;
}

LoadedLibraries::Copy* LoadedLibraries::copy_with(int rank, const std::string& path) {
  const auto found =
      std::ranges::find_if(copies_, [&](const Copy& copy) { return copy.rank == rank && copy.path == path; });
  return found == copies_.end() ? nullptr : &*found;
}

int LoadedLibraries::num_own(int rank) const {
  return static_cast<int>(std::ranges::count_if(
      copies_, [rank](const Copy& copy) { return copy.rank == rank && copy.uses > 0; }));
}

void LoadedLibraries::rank_left(int rank) {
  std::erase_if(copies_, [rank](const Copy& copy) { return copy.rank == rank; });
}

}  // namespace weft::mpi_host
