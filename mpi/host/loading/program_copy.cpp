#include "loading/program_copy.h"

#include <dlfcn.h>
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
#include "program/refusal.h"

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

int protection_of(const Elf64_Phdr& segment) {
  return ((segment.p_flags & PF_R) != 0 ? PROT_READ : 0) | ((segment.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
         ((segment.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
}

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

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

// Makes `*variable` the rank's own: the copy's variable of that name, or the one that the copy's references will name.
template <class T>
void bind_variable(const Reference& reference, char* base, T** variable) {
  char* const place = base + reference.place;
  if (reference.type == R_X86_64_COPY) {
    *variable = reinterpret_cast<T*>(place);
  } else {
    *reinterpret_cast<T**>(place) = *variable;
  }
}

// The loader copies names as they were when this process began.
void bind_name(const Reference& reference, char* base, char* value) {
  if (reference.type == R_X86_64_COPY) *reinterpret_cast<char**>(base + reference.place) = value;
}

// std::cout and its kin. A program that is compiled with -fPIC refers to those of the library; the rank gets its own, as a
// program that is not has copies.
void bind_stream(const Reference& reference, char* base, RankState& state) {
  constexpr std::array kStreams = {std::string_view("_ZSt3cin"),   std::string_view("_ZSt4cout"),
                                   std::string_view("_ZSt4cerr"),  std::string_view("_ZSt4clog"),
                                   std::string_view("_ZSt4wcin"),  std::string_view("_ZSt5wcout"),
                                   std::string_view("_ZSt5wcerr"), std::string_view("_ZSt5wclog")};
  if (reference.type != R_X86_64_GLOB_DAT || std::ranges::find(kStreams, reference.name) == kStreams.end())
    return;
  auto& place = *reinterpret_cast<void**>(base + reference.place);
  Dl_info found{};
  const Elf64_Sym* symbol = nullptr;
  if (dladdr1(place, &found, const_cast<void**>(reinterpret_cast<const void**>(&symbol)), RTLD_DL_SYMENT) ==
          0 ||
      symbol == nullptr)
    return;
  void* const stream = state.allocate(symbol->st_size);
  std::memcpy(stream, place, symbol->st_size);
  place = stream;
}

}  // namespace

ProgramCopy::ProgramCopy(const Program& program, const Linkage& linkage, int fd, char* base, RankState& state)
    : program_(program), state_(state), base_(base) {
  map_segments(program_, fd, base_);
  linkage.apply(base_);
  state.finish = [this](int code) { finish(code); };
  state.begin_address = reinterpret_cast<std::uintptr_t>(base_);
  state.end_address = state.begin_address + program.image_bytes();
  find_variables(linkage);
  protect_relocations(program_, base_);
  find_main();
}

void ProgramCopy::map_segments(const Program& program, int fd, char* base) {
  const std::uint64_t page = page_size();
  const auto map = [&](std::uint64_t begin, std::uint64_t end, int protection, int flags, int file,
                       std::uint64_t offset) {
    if (begin == end || mmap(base + begin, end - begin, protection, MAP_PRIVATE | MAP_FIXED | flags, file,
                             static_cast<off_t>(offset)) != MAP_FAILED)
      return;
    throw Refusal(
        format("{}: a copy of it cannot be mapped at {}: {}; start more PEs (-n), or allow more mappings "
               "(sysctl vm.max_map_count)",
               program.path(), static_cast<void*>(base), std::strerror(errno)));
  };
  for (const Elf64_Phdr& segment : program.loaded_segments()) {
    const int protection = protection_of(segment);
    const std::uint64_t before = segment.p_vaddr % page;
    const std::uint64_t begin = segment.p_vaddr - before;
    const std::uint64_t end_of_file = segment.p_vaddr + segment.p_filesz;
    const std::uint64_t file_end = segment.p_filesz == 0 ? begin : (end_of_file + page - 1) / page * page;
    const std::uint64_t end = (segment.p_vaddr + segment.p_memsz + page - 1) / page * page;
    map(begin, file_end, protection, 0, fd, segment.p_offset - before);
    // Variables without a value in the file begin in its last page.
    if (segment.p_filesz != 0 && segment.p_memsz > segment.p_filesz)
      std::memset(base + end_of_file, 0, file_end - end_of_file);
    map(file_end, end, protection, MAP_ANONYMOUS, -1, 0);
  }
}

// The part of the program that is written only while it is loaded.
void ProgramCopy::protect_relocations(const Program& program, char* base) {
  const Elf64_Phdr* const segment = program.file().segment(PT_GNU_RELRO);
  if (segment == nullptr) return;
  const std::uint64_t page = page_size();
  const std::uint64_t begin = segment->p_vaddr / page * page;
  const std::uint64_t end = (segment->p_vaddr + segment->p_memsz) / page * page;
  if (end <= begin) return;
  if (end > program.image_bytes() || mprotect(base + begin, end - begin, PROT_READ) != 0)
    throw Refusal(format("{}: memory cannot be write-protected: {}", program.path(), std::strerror(errno)));
}

void ProgramCopy::find_variables(const Linkage& linkage) {
  LibcVariables& libc = state_.libc;
  // A program can have both a copy of a variable and references to it: copies come first.
  for (const bool copies : {true, false}) {
    for (const Reference& reference : linkage.references()) {
      if ((reference.type == R_X86_64_COPY) != copies) continue;
      const std::string_view name = reference.name;
      if (name == "environ" || name == "_environ" || name == "__environ")
        bind_variable(reference, base_, &libc.environment);
      if (name == "optarg") bind_variable(reference, base_, &libc.argument);
      if (name == "optind") bind_variable(reference, base_, &libc.index);
      if (name == "opterr") bind_variable(reference, base_, &libc.prints_errors);
      if (name == "optopt") bind_variable(reference, base_, &libc.unknown_option);
      if (name == "program_invocation_name" || name == "__progname_full")
        bind_name(reference, base_, program_invocation_name);
      if (name == "program_invocation_short_name" || name == "__progname")
        bind_name(reference, base_, program_invocation_short_name);
      bind_stream(reference, base_, state_);
      if (name == "__libc_start_main" && !copies)
        *reinterpret_cast<void**>(base_ + reference.place) = reinterpret_cast<void*>(&capture_main);
    }
  }
  *libc.argument = nullptr;
  *libc.index = 1;
  *libc.prints_errors = 1;
  *libc.unknown_option = '?';
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
  state_.keep_environment(environment_of_host());
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
