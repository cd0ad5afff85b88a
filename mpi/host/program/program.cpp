#include "program/program.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "program/refusal.h"
#include "ranks/host_interface.h"

namespace weft::mpi_host {

namespace {

using base::format;

// A program with more than 64 GiB of code and variables is damaged.
constexpr std::uint64_t kLargestImageBytes = std::uint64_t{64} << 30;

void check(const ElfFile& file) {
  const std::string& path = file.path();
  if (file.interpreter().empty() && file.header().e_type != ET_DYN) {
    throw Refusal(
        format("{}: is linked statically, so its ranks would share all variables; link it without -static to "
               "run several ranks in a process",
               path));
  }
  if (file.header().e_type != ET_DYN || !file.dynamic_value(DT_FLAGS_1) ||
      (*file.dynamic_value(DT_FLAGS_1) & DF_1_PIE) == 0) {
    throw Refusal(format(
        "{}: has fixed addresses, so there can be one copy of it in a process; compile and link it with "
        "-fPIE -pie to run several ranks in a process",
        path));
  }
  if (file.interpreter().empty())
    throw Refusal(
        format("{}: is linked with -static-pie; link it without to run several ranks in a process", path));
  if (file.segment(PT_TLS) != nullptr) {
    throw Refusal(format(
        "{}: has thread-local variables (thread_local, __thread, or OpenMP's threadprivate), which the ranks "
        "of a process would share; make them ordinary variables, or start one PE per rank (-n)",
        path));
  }
}

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Program::Program(ElfFile file) : file_(std::move(file)) {
  check(file_);
  read_segments();
  first_constructor = read_function(DT_INIT);
  last_destructor = read_function(DT_FINI);
  early_constructors = read_array(DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ);
  constructors = read_array(DT_INIT_ARRAY, DT_INIT_ARRAYSZ);
  destructors = read_array(DT_FINI_ARRAY, DT_FINI_ARRAYSZ);
}

void Program::read_segments() {
  const std::uint64_t page = page_bytes();
  for (const Elf64_Phdr& segment : file_.segments()) {
    if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
    const bool has_place = segment.p_vaddr <= kLargestImageBytes && segment.p_memsz <= kLargestImageBytes &&
                           segment.p_filesz <= segment.p_memsz &&
                           segment.p_vaddr % page == segment.p_offset % page &&
                           segment.p_vaddr / page * page >= image_bytes_;
    const bool has_variables = (segment.p_flags & PF_W) != 0;
    if (!has_place || (segment.p_filesz < segment.p_memsz && !has_variables))
      file_.refuse_damaged("segments");
    image_bytes_ = (segment.p_vaddr + segment.p_memsz + page - 1) / page * page;
    loaded_segments_.push_back(segment);
  }
  if (entry() >= image_bytes_) file_.refuse_damaged("start code");
}

// A rank announces a range for each segment with variables, and one for its stack and its heap.
const char* Program::obstacle_to_moves() const {
  const auto num_writable = std::ranges::count_if(
      loaded_segments_, [](const Elf64_Phdr& segment) { return (segment.p_flags & PF_W) != 0; });
  if (num_writable < WEFT_MPI_HOST_MOST_RANGES) return nullptr;
  return "the program has variables in more than 7 segments; link it with the linker's own script";
}

std::uint64_t Program::read_function(std::int64_t tag) const {
  const std::uint64_t offset = file_.dynamic_value(tag).value_or(0);
  if (offset >= image_bytes_) file_.refuse_damaged("constructors");
  return offset;
}

FunctionArray Program::read_array(std::int64_t tag, std::int64_t size_tag) const {
  const FunctionArray array = {.offset = file_.dynamic_value(tag).value_or(0),
                               .count = file_.dynamic_value(size_tag).value_or(0) / sizeof(void*)};
  if (array.offset > image_bytes_ || array.count > (image_bytes_ - array.offset) / sizeof(void*))
    file_.refuse_damaged("constructors");
  return array;
}

}  // namespace weft::mpi_host
