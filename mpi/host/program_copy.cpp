#include "program_copy.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "refusal.h"

namespace weft::mpi_host {

namespace {

using base::format;

// Where capture_main() goes back to, and what it has seen.
struct Capture {
  std::jmp_buf back;
  Main main = nullptr;
  Main constructors = nullptr;
};
Capture* capture = nullptr;

int memory_file(const Program& program, int rank) {
  const std::string& path = program.path();
  const std::string name = format("rank {} of {}", rank, path.substr(path.rfind('/') + 1).substr(0, 200));
  const int fd = memfd_create(name.c_str(), MFD_CLOEXEC);
  if (fd < 0) {
    throw Refusal(
        format("{}: no copy for rank {}: {}; start more PEs (-n), or allow more open files (ulimit -n)", path,
               rank, std::strerror(errno)));
  }
  const std::vector<std::byte>& image = program.image();
  for (std::size_t done = 0; done < image.size();) {
    const ssize_t written = write(fd, image.data() + done, image.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) throw Refusal(format("{}: no copy for rank {}: {}", path, rank, std::strerror(errno)));
    done += static_cast<std::size_t>(written);
  }
  return fd;
}

// The start code of a program expects the number of arguments and three empty lists at the stack pointer.
[[noreturn]] void enter_start_code(const void* entry) {
  // The red zone of this function lies below its stack pointer.
  asm volatile(
      "subq $1024, %%rsp\n\t"
      "andq $-16, %%rsp\n\t"
      "pushq $0\n\t"
      "pushq $0\n\t"
      "pushq $0\n\t"
      "pushq $0\n\t"
      "xorl %%edx, %%edx\n\t"
      "jmp *%0"
      :
      : "r"(entry)
      : "memory", "rdx");
  __builtin_unreachable();
}

// The part of the program that the loader write-protects after it has filled it in.
class WritableRelocations {
 public:
  WritableRelocations(const Program& program, char* base) {
    const Elf64_Phdr* const segment = program.file().segment(PT_GNU_RELRO);
    if (segment == nullptr) return;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(base) + segment->p_vaddr;
    begin_ = reinterpret_cast<void*>(begin & ~(page - 1));
    size_ = ((begin + segment->p_memsz) & ~(page - 1)) - reinterpret_cast<std::uintptr_t>(begin_);
    if (size_ != 0 && mprotect(begin_, size_, PROT_READ | PROT_WRITE) != 0)
      throw Refusal(format("{}: memory cannot be made writable: {}", program.path(), std::strerror(errno)));
  }
  ~WritableRelocations() {
    if (size_ != 0) mprotect(begin_, size_, PROT_READ);
  }
  WritableRelocations(const WritableRelocations&) = delete;
  WritableRelocations& operator=(const WritableRelocations&) = delete;

 private:
  void* begin_ = nullptr;
  std::size_t size_ = 0;
};

// A symbol that the copy refers to, and the memory that the loader filled in for it.
struct Reference {
  std::uint64_t type = 0;
  std::string_view name;
  void* place = nullptr;
};

std::vector<Reference> references_of(const ElfFile& file, char* base) {
  std::vector<Reference> references;
  const auto* const symbols =
      reinterpret_cast<const Elf64_Sym*>(base + file.dynamic_value(DT_SYMTAB).value_or(0));
  const auto* const names = base + file.dynamic_value(DT_STRTAB).value_or(0);
  const auto add = [&](std::int64_t table, std::int64_t size) {
    const auto* const first =
        reinterpret_cast<const Elf64_Rela*>(base + file.dynamic_value(table).value_or(0));
    const std::uint64_t count = file.dynamic_value(size).value_or(0) / sizeof(Elf64_Rela);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t symbol = ELF64_R_SYM(first[i].r_info);
      if (symbol == 0) continue;
      references.push_back({.type = ELF64_R_TYPE(first[i].r_info),
                            .name = names + symbols[symbol].st_name,
                            .place = base + first[i].r_offset});
    }
  };
  add(DT_RELA, DT_RELASZ);
  add(DT_JMPREL, DT_PLTRELSZ);
  return references;
}

// Makes `*variable` the rank's own: the copy's variable of that name, or the one that the copy's references will name.
template <class T>
void bind_variable(const Reference& reference, T** variable) {
  if (reference.type == R_X86_64_COPY) {
    *variable = static_cast<T*>(reference.place);
  } else if (reference.type == R_X86_64_GLOB_DAT || reference.type == R_X86_64_64) {
    *static_cast<T**>(reference.place) = *variable;
  }
}

// The loader copies names as they were when this process began.
void bind_name(const Reference& reference, char* value) {
  if (reference.type == R_X86_64_COPY) *static_cast<char**>(reference.place) = value;
}

// std::cout and its kin. A program that is compiled with -fPIC refers to those of the library; the rank gets its own, as a
// program that is not has copies.
void bind_stream(const Reference& reference, RankState& state) {
  constexpr std::array kStreams = {std::string_view("_ZSt3cin"),   std::string_view("_ZSt4cout"),
                                   std::string_view("_ZSt4cerr"),  std::string_view("_ZSt4clog"),
                                   std::string_view("_ZSt4wcin"),  std::string_view("_ZSt5wcout"),
                                   std::string_view("_ZSt5wcerr"), std::string_view("_ZSt5wclog")};
  if (reference.type != R_X86_64_GLOB_DAT || std::ranges::find(kStreams, reference.name) == kStreams.end())
    return;
  auto& place = *static_cast<void**>(reference.place);
  Dl_info found{};
  const Elf64_Sym* symbol = nullptr;
  if (dladdr1(place, &found, const_cast<void**>(reinterpret_cast<const void**>(&symbol)), RTLD_DL_SYMENT) ==
          0 ||
      symbol == nullptr)
    return;
  state.streams.push_back(
      std::make_unique<std::max_align_t[]>(symbol->st_size / sizeof(std::max_align_t) + 1));
  std::memcpy(state.streams.back().get(), place, symbol->st_size);
  place = state.streams.back().get();
}

}  // namespace

ProgramCopy::ProgramCopy(const Program& program, int rank, RankState& state)
    : program_(program), state_(state) {
  load(rank);
  state.finish = [this](int code) { finish(code); };
  state.begin_address = reinterpret_cast<std::uintptr_t>(base_);
  for (const Elf64_Phdr& segment : program.file().segments()) {
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t end = state.begin_address + segment.p_vaddr + segment.p_memsz;
    state.end_address = std::max(state.end_address, end);
  }
  find_variables();
  find_main();
}

void ProgramCopy::load(int rank) {
  const int fd = memory_file(program_, rank);
  void* const handle = dlopen(format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw Refusal(format("{}: cannot be loaded for rank {}: {}", program_.path(), rank, dlerror()));
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0)
    throw Refusal(format("{}: {}", program_.path(), dlerror()));
  base_ = reinterpret_cast<char*>(map->l_addr);
}

void ProgramCopy::find_variables() {
  const WritableRelocations writable(program_, base_);
  LibcVariables& libc = state_.libc;
  const std::vector<Reference> references = references_of(program_.file(), base_);
  // A program can have both a copy of a variable and references to it: copies come first.
  for (const bool copies : {true, false}) {
    for (const Reference& reference : references) {
      if ((reference.type == R_X86_64_COPY) != copies) continue;
      const std::string_view name = reference.name;
      if (name == "environ" || name == "_environ" || name == "__environ")
        bind_variable(reference, &libc.environment);
      if (name == "optarg") bind_variable(reference, &libc.argument);
      if (name == "optind") bind_variable(reference, &libc.index);
      if (name == "opterr") bind_variable(reference, &libc.prints_errors);
      if (name == "program_invocation_name" || name == "__progname_full")
        bind_name(reference, program_invocation_name);
      if (name == "program_invocation_short_name" || name == "__progname")
        bind_name(reference, program_invocation_short_name);
      bind_stream(reference, state_);
      if (name == "optopt") bind_variable(reference, &libc.unknown_option);
      if (name == "__libc_start_main" && !copies)
        *static_cast<void**>(reference.place) = reinterpret_cast<void*>(&capture_main);
    }
  }
  *libc.argument = nullptr;
  *libc.index = 1;
  *libc.prints_errors = 1;
  *libc.unknown_option = '?';
  state_.keep_environment(environ);
}

// Called by the start code of the copy in place of the C library's function. It must not return.
int ProgramCopy::capture_main(Main main, int /*argc*/, char** /*argv*/, Main constructors,
                              void (* /*destructors*/)(), void (* /*loader_end*/)(), void* /*stack_end*/) {
  capture->main = main;
  capture->constructors = constructors;
  std::longjmp(capture->back, 1);
}

void ProgramCopy::find_main() {
  Capture seen;
  capture = &seen;
  if (setjmp(seen.back) == 0) enter_start_code(base_ + program_.entry());
  capture = nullptr;
  start_ = {.main = seen.main, .constructors = seen.constructors};
}

void ProgramCopy::run_array(const FunctionArray& array, int argc, char** argv, char** environment) const {
  auto* const functions = reinterpret_cast<Main*>(base_ + array.offset);
  for (std::uint64_t i = 0; i < array.count; ++i) functions[i](argc, argv, environment);
}

void ProgramCopy::run_constructors(int argc, char** argv, char** environment) const {
  run_array(program_.early_constructors, argc, argv, environment);
  if (start_.constructors != nullptr) {
    start_.constructors(argc, argv, environment);
    return;
  }
  if (program_.first_constructor != 0)
    reinterpret_cast<Main>(base_ + program_.first_constructor)(argc, argv, environment);
  run_array(program_.constructors, argc, argv, environment);
}

int ProgramCopy::run(const std::vector<std::string>& arguments) {
  arguments_ = arguments;
  for (std::string& argument : arguments_) argv_.push_back(argument.data());
  argv_.push_back(nullptr);
  const auto argc = static_cast<int>(arguments_.size());
  run_constructors(argc, argv_.data(), *state_.libc.environment);
  const int code = start_.main(argc, argv_.data(), *state_.libc.environment);
  finish(code);
  return code;
}

void ProgramCopy::finish(int code) {
  while (!state_.exit_handlers.empty()) {
    const ExitHandler handler = state_.exit_handlers.back();
    state_.exit_handlers.pop_back();
    if (handler.function != nullptr) handler.function(handler.argument);
    if (handler.with_code != nullptr) handler.with_code(code, handler.argument);
  }
  // Once: a destructor may call exit().
  if (std::exchange(state_.has_run_destructors, true)) return;
  auto* const destructors = reinterpret_cast<void (**)()>(base_ + program_.destructors.offset);
  for (std::uint64_t i = program_.destructors.count; i > 0; --i) destructors[i - 1]();
  if (program_.last_destructor != 0) reinterpret_cast<void (*)()>(base_ + program_.last_destructor)();
  std::fflush(nullptr);
}

}  // namespace weft::mpi_host
